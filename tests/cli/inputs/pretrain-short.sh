#!/usr/bin/env bash
# A layout without the last layer, and a batch that its activations do not fit for.
TP=2
ARGS=(
  --num-layers 12 --hidden-size 2048 --num-attention-heads 16 --ffn-hidden-size 5504 --swiglu
  --untie-embeddings-and-output-weights
  --seq-length 2048 --micro-batch-size 64 --global-batch-size 256
  --tensor-model-parallel-size "$TP" --sequence-parallel
  --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|t*7,L'
  --use-distributed-optimizer
)
torchrun --nproc-per-node 4 pretrain_gpt.py "${ARGS[@]}"
