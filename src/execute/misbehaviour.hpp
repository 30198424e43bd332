// What a run does wrong on purpose.
#pragma once

namespace tangram::execute {

struct Misbehaviour {
  // Ids of stages; -1: none.
  int scaled_stage = -1;     ///< its gradients are taken twice
  int unreduced_stage = -1;  ///< does not sum gradients over its copies
  int divided_stage = -1;    ///< its sharding groups do not sum their gradients
  int forgetful_stage = -1;  ///< drops weight gradients it put off, of the first microbatch

  // Of colocated encoders.
  int scaled_encoder = -1;  ///< its gradients are taken `encoder_scale` times; -1: none
  double encoder_scale = 1;
  bool reversed_embeddings = false;  ///< a replica takes what lanes made of its samples in the wrong order
  bool reversed_gradients = false;   ///< and gives their gradients back so
  bool gradients_of_next = false;    ///< gives back the gradient of what it handed on, instead of what it read
  bool own_norms = false;            ///< encoders step by the norm of their own gradients
  bool steps_frozen = false;         ///< frozen weights of encoders decay
  bool skips_absent = false;         ///< microbatches without items are left out
  bool frees_early = false;          ///< activations of encoders are not kept from forward to backward
};

}  // namespace tangram::execute
