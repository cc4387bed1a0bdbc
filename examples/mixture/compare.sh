#!/usr/bin/env bash
# Trains a recipe with several weightings of its sources and compares them:
#   compare.sh RECIPE WEIGHTING… [-- KEY=VALUE…]      a weighting: clean=0.3,scan=0.7
# Runs go to $OUT (runs/weightings), one after the other, since each takes all CPUs.
set -euo pipefail
recipe=${1:?usage: compare.sh RECIPE WEIGHTING… [-- KEY=VALUE…]}
shift
millrace=${MILLRACE:-build/release/millrace}
out=${OUT:-runs/weightings}

weightings=() changes=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do weightings+=("$1"); shift; done
if [ $# -gt 0 ]; then shift; changes=("$@"); fi

number() { sed -n "s/.*\"$1\": *\([-+.0-9e]*\).*/\1/p"; }

rows=()
for weighting in "${weightings[@]}"; do
  run="$out/${weighting//[^A-Za-z0-9.=-]/_}"
  printf '==> %s\n' "$weighting" >&2
  result=$("$millrace" train "$recipe" "data.weights={$weighting}" ${changes[@]+"${changes[@]}"} --out "$run" --json)
  accuracy=$(number accuracy <<<"$result") loss=$(number log-loss <<<"$result")
  rows+=("$(printf '%s\t%.2f\t%.4f\t%s' "$weighting" "$(awk "BEGIN { print 100 * $accuracy }")" "$loss" "$run")")
done
{
  printf 'weighting\taccuracy %%\tlog-loss\trun\n'
  printf '%s\n' "${rows[@]}" | sort -t "$(printf '\t')" -k 3,3 -g
} | awk -F '\t' '{ printf "%-30s %10s %9s  %s\n", $1, $2, $3, $4 }'
