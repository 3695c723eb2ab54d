#!/usr/bin/env bash
# Checks and measures a card with what is in bin/: interlock, interlock-prover,
# libinterlock_cuda.so and interlock-cuda-bench. Builds nothing.
#
#   cuda/bench-gpu.sh [PART]...
#
# Parts: kernels small porep-32GiB sectors-32GiB update-32GiB window-32GiB limited,
# or all; without any, kernels and small. Those of 32 GiB keep 44 to
# 57 GiB of parameters in DIR and take minutes; limited is porep-32GiB and
# window-32GiB on a card of 16 GiB.
#
# And, not among all: tests, which are those of `make gpu-tests`: proofs byte for
# byte, and what goes wrong with a card, 200 times each; sanitizer, which needs
# compute-sanitizer on PATH.
#
#   DEVICE=0         the card
#   DIR=/dev/shm/... where parameters are (default: a directory that is removed)
#   RUNS=3           how often a proof is timed
#   OUT=artifacts    where the results are written, too
set -euo pipefail
cd "$(dirname "$0")/.."

for file in interlock interlock-prover libinterlock_cuda.so interlock-cuda-bench; do
  [ -e "bin/$file" ] || { echo "bin/$file is missing: run 'make build cuda' where Go and nvcc are, and copy bin/ here" >&2; exit 2; }
done
device=${DEVICE:-0}
out=${OUT:-artifacts}
mkdir -p "$out"
if [ -z "${DIR:-}" ]; then
  memory=/tmp
  [ -w /dev/shm ] && memory=/dev/shm
  DIR=$(mktemp -d "$memory/interlock-bench-XXXXXX")
  trap 'rm -rf "$DIR"' EXIT
fi

# bench NAME [FLAG]...: one benchmark of interlock's.
bench() {
  bin/interlock bench "$1" --device "$device" --dir "$DIR" --runs "${RUNS:-3}" "${@:2}" 2>&1 | tee -a "$out/bench-gpu.txt"
}

# Parameters of another circuit would not fit beside those that are there.
only() {
  find "$DIR" -name 'v28-*' -size +1G ! -name "v28-$1*" -delete
}

part() {
  case $1 in
    kernels) CUDA_VISIBLE_DEVICES=$device bin/interlock-cuda-bench | tee -a "$out/bench-gpu-kernels.jsonl" ;;
    small) for name in gpu-winning-2KiB gpu-porep10-2KiB gpu-sectors-2KiB; do bench $name; done ;;
    porep-32GiB) only stacked-proof; bench gpu-porep-32GiB ;;
    sectors-32GiB) only stacked-proof; bench gpu-sectors-32GiB ;;
    limited)
      only stacked-proof; bench gpu-porep-32GiB --memory-limit 16GiB
      only proof-of-spacetime; bench gpu-window-32GiB --memory-limit 16GiB ;;
    update-32GiB) only empty-sector-update; bench gpu-update-32GiB ;;
    window-32GiB) only proof-of-spacetime; bench gpu-window-32GiB ;;
    tests)
      export INTERLOCK_CUDA_LIBRARY=$PWD/bin/libinterlock_cuda.so CUDA_VISIBLE_DEVICES=$device
      for package in prover/cuda prover host; do
        program=$PWD/bin/$(basename $package)-gpu.test
        (cd $package && "$program" -test.v -test.run GPU) 2>&1 | tee -a "$out/gpu-tests.txt"
      done ;;
    sanitizer)
      for tool in memcheck racecheck synccheck; do
        CUDA_VISIBLE_DEVICES=$device compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 bin/interlock-cuda-bench check --max-log 6 2>&1 | tee -a "$out/sanitizer.txt"
      done ;;
    all) for name in kernels small update-32GiB sectors-32GiB porep-32GiB limited window-32GiB; do part $name; done ;;
    *) echo "there is no part $1" >&2; exit 2 ;;
  esac
}

[ $# -gt 0 ] || set -- kernels small
for name in "$@"; do part "$name"; done
