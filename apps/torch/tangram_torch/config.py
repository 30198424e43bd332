"""What the config.json of a Hugging Face model says of its layers and a model file does not. Nothing here needs
PyTorch.

Dropout is not read: none is applied.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Union

from .details import Details, Rotary
from .encoders import Json
from .errors import PlanError

ACTIVATIONS = {"silu": "silu", "swish": "silu", "relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh",
               "gelu_fast": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}

# Defaults are those of the configuration classes in huggingface/transformers
# (src/transformers/models/<type>/configuration_<type>.py): of the key of epsilon, epsilon, the key of the activation,
# the activation, and the base of rotary positions.
_RMS = ("rms_norm_eps", 1e-6, "hidden_act", "silu", 10_000.0)
_DEFAULTS: dict[str, tuple[str, float, str, str, float]] = {
    "llama": _RMS, "mistral": _RMS, "qwen2": _RMS, "qwen2_moe": _RMS, "qwen3": _RMS, "qwen3_moe": _RMS,
    "deepseek_v2": _RMS, "deepseek_v3": _RMS,
    "mixtral": ("rms_norm_eps", 1e-5, "hidden_act", "silu", 1_000_000.0),
    "gemma2": ("rms_norm_eps", 1e-6, "hidden_activation", "gelu_pytorch_tanh", 10_000.0),
    "gpt2": ("layer_norm_epsilon", 1e-5, "activation_function", "gelu_new", 10_000.0),
    "gpt_neox": ("layer_norm_eps", 1e-5, "hidden_act", "gelu", 10_000.0),
    "opt": ("", 1e-5, "activation_function", "relu", 10_000.0),
}
MODEL_TYPES = tuple(_DEFAULTS)

# What would change the result in a way that layers.py has not: the only value of a key that is run.
_FIXED: dict[str, dict[str, Any]] = {
    "gpt2": {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
    "opt": {"layer_norm_elementwise_affine": True},
    "deepseek_v2": {"scoring_func": "softmax"},
    "deepseek_v3": {"scoring_func": "sigmoid", "topk_method": "noaux_tc"},
}


def read_json(path: Union[str, Path]) -> Json:
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise PlanError(f"{path}: {reason}") from reason
    if not isinstance(value, dict):
        raise PlanError(f"{path} is not a JSON object")
    return value


def read_details(path: Union[str, Path]) -> Details:
    """Of a config.json."""
    config = read_json(path)
    try:
        return details_of(config)
    except KeyError as key:
        raise PlanError(f"{path} lacks {key}") from key
    except PlanError as reason:
        raise PlanError(f"{path}: {reason}") from reason


def details_of(config: Json) -> Details:
    """Raises PlanError by the name of a key whose value is not supported."""
    model_type = config.get("model_type")
    if model_type not in _DEFAULTS:
        raise PlanError(f'model_type "{model_type}" is not supported: {", ".join(MODEL_TYPES)} are')
    for key, only in _FIXED.get(model_type, {}).items():
        if config.get(key, only) != only:
            raise _unsupported(key, config[key], [only])
    epsilon_key, epsilon, activation_key, activation, base = _DEFAULTS[model_type]
    values: Json = {"epsilon": config.get(epsilon_key, epsilon), "latent_epsilon": 1e-6,
                    "activation": _activation(config, activation_key, activation), "rotary": _rotary(config, base)}
    own = {"gemma2": _gemma2, "opt": _opt, "qwen2_moe": _qwen_moe, "qwen3_moe": _qwen_moe, "deepseek_v2": _deepseek,
           "deepseek_v3": _deepseek}.get(model_type)
    return Details(**values, **(own(config, values["rotary"]) if own else {}))


def _unsupported(key: str, value: Any, supported: list[Any]) -> PlanError:
    return PlanError(f"{key} {value!r} is not supported: {', '.join(map(repr, supported))}"
                       f" {'is' if len(supported) == 1 else 'are'}")


def _activation(config: Json, key: str, default: str) -> str:
    name = config.get(key) or default
    if name not in ACTIVATIONS:
        raise _unsupported(key, name, list(ACTIVATIONS))
    return ACTIVATIONS[name]


def _rotary(config: Json, base: float) -> Rotary:
    """transformers up to 4 has rope_theta beside rope_scaling, from 5 on all of it in rope_parameters."""
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    fraction = 1.0
    if config["model_type"] == "gpt_neox":
        base = config.get("rotary_emb_base", base)
        fraction = scaling.get("partial_rotary_factor", config.get("rotary_pct", 0.25))
    base = scaling.get("rope_theta", config.get("rope_theta", base))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return Rotary(base, fraction)
    if kind not in ("linear", "llama3", "yarn"):
        raise _unsupported("rope_type", kind, ["default", "linear", "llama3", "yarn"])
    needed = {"linear": ["factor"], "yarn": ["factor"],
              "llama3": ["factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"]}[kind]
    missing = [key for key in needed if key not in scaling]
    if missing:
        raise PlanError(f"rotary positions of type {kind} lack {', '.join(missing)}")
    factor = float(scaling["factor"])
    context = int(scaling.get("original_max_position_embeddings") or config.get("max_position_embeddings") or 0)
    if kind == "linear":
        return Rotary(base, fraction, kind, factor)
    if kind == "llama3":
        return Rotary(base, fraction, kind, factor, context, scaling["low_freq_factor"], scaling["high_freq_factor"])
    if not context:
        raise PlanError("rotary positions of type yarn lack original_max_position_embeddings")
    if not scaling.get("truncate", True):
        raise _unsupported("truncate", False, [True])
    return Rotary(base, fraction, kind, factor, context, scaling.get("beta_slow") or 1, scaling.get("beta_fast") or 32,
                  _yarn_magnitude(scaling, factor))


def _yarn_magnitude(scaling: Json, factor: float) -> float:
    if scaling.get("attention_factor") is not None:
        return scaling["attention_factor"]
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return _yarn_growth(factor, scaling["mscale"]) / _yarn_growth(factor, scaling["mscale_all_dim"])
    return _yarn_growth(factor, 1.0)


def _yarn_growth(factor: float, weight: float) -> float:
    """arXiv 2309.00071, section 3.4."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _gemma2(config: Json, _: Rotary) -> Json:
    return {"norm_offset": 1.0, "embedding_scale": math.sqrt(config["hidden_size"]),
            "attention_scale": config.get("query_pre_attn_scalar", 256) ** -0.5,
            "attention_cap": config.get("attn_logit_softcapping", 50.0) or 0.0,
            "logit_cap": config.get("final_logit_softcapping", 30.0) or 0.0}


def _opt(config: Json, _: Rotary) -> Json:
    return {"position_offset": 2, "norms_behind": not config.get("do_layer_norm_before", True)}


def _qwen_moe(config: Json, _: Rotary) -> Json:
    return {"gates_sum_to_one": config.get("norm_topk_prob", False)}


def _deepseek(config: Json, rotary: Rotary) -> Json:
    newer = config["model_type"] == "deepseek_v3"
    method = config.get("topk_method", "noaux_tc" if newer else "greedy")
    if method not in ("noaux_tc", "greedy", "group_limited_greedy"):
        raise _unsupported("topk_method", method, ["greedy", "group_limited_greedy"])
    sums, scale = config.get("norm_topk_prob", newer), config.get("routed_scaling_factor", 2.5 if newer else 1.0)
    if sums and scale != 1 and not newer:  # the model's own code does not scale then, that of transformers does
        raise _unsupported("norm_topk_prob", True, [False])
    values = {"gates_sum_to_one": sums, "gate_scale": scale}
    if method != "greedy":
        values.update(expert_groups=config.get("n_group") or (8 if newer else 1),
                      chosen_groups=config.get("topk_group") or (4 if newer else 1))
    all_dims = (config.get("rope_parameters") or config.get("rope_scaling") or {}).get("mscale_all_dim")
    if rotary.scaling == "yarn" and all_dims:
        width = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        values["attention_scale"] = width ** -0.5 * _yarn_growth(rotary.factor, all_dims) ** 2
    return values
