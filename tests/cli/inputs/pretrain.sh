#!/usr/bin/env bash
# A job as people start it: two stages of the same width, cut by hand.
TP=2
ARGS=(
  --num-layers 12 --hidden-size 2048 --num-attention-heads 16 --ffn-hidden-size 5504 --swiglu
  --untie-embeddings-and-output-weights
  --seq-length 2048 --micro-batch-size 1 --global-batch-size 32
  --tensor-model-parallel-size "$TP" --sequence-parallel
  --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*9|t*3,L'
  --use-distributed-optimizer
)
torchrun --nproc-per-node 4 pretrain_gpt.py "${ARGS[@]}"
