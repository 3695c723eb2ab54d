#!/usr/bin/env bash
# From nothing to verified proofs: makes development parameters, starts the
# plugin for each proof as sealing software would, and verifies what comes back.
set -euo pipefail
cd "$(dirname "$0")/.."

inputs=examples/inputs
out=build/demo
params=$out/params
mkdir -p "$params"

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

# field CASE NAME: one field of a case's description.
field() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$inputs/$1/case.json" | head -n 1; }

# try CASE KIND FLAGS-AND-FILES...: parameters, proof, verification, waterfall.
try() {
  local case=$1 kind=$2
  shift 2
  say "$kind: development parameters (INSECURE: their secret is public)"
  bin/interlock params setup "$kind" 2KiB --insecure-dev --dir "$params" >"$out/$case.sha256"
  say "$kind: prove"
  bin/interlock prove "$kind" "$@" --params "$params" -o "$out/$case.proof" --timeline "$out/$case.timeline"
  say "$kind: verify"
  bin/interlock verify "$kind" "$@" --params "$params" --proof "$out/$case.proof"
  echo "proof in $out/$case.proof:"
  od -An -v -tx1 "$out/$case.proof" | tr -d ' \n' | fold -w 96
  echo
  bin/interlock timeline "$out/$case.timeline"
}

post() {
  local case=$1 kind=$2
  try "$case" "$kind" --sector-size 2KiB --miner-id "$(field "$case" miner_id)" \
    --randomness "$(field "$case" randomness)" "$inputs/$case"/vanilla-*.bin
}

post winning-2KiB winning-post
post window-2KiB window-post
try update-2KiB update --sector-size 2KiB --comm-r-old "$(field update-2KiB comm_r_old)" \
  --comm-r-new "$(field update-2KiB comm_r_new)" --comm-d-new "$(field update-2KiB comm_d_new)" \
  "$inputs"/update-2KiB/vanilla-0.bin
try porep-2KiB porep --miner-id "$(field porep-2KiB miner_id)" "$inputs/porep-2KiB/c1-wrapped.json"

say "done: every proof was verified by the plugin before it was handed out, and once more here"
