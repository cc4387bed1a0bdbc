#!/usr/bin/env bash
# Makes the sources of mixture.toml: sources.sh DIR [CLEAN LETTERS]
set -euo pipefail
out=${1:?usage: sources.sh DIR [CLEAN LETTERS]}
count=${2:-4000}
millrace=${MILLRACE:-build/release/millrace}

"$millrace" letters "$out/clean" --train "$count" --test "$((count / 5))" --seed 1
"$millrace" letters "$out/few" --train "$((count / 10))" --test "$((count / 5))" --seed 2
"$millrace" pack "$out/few" "$out/scan" --augment 1 --augmentations "rotate 30, noise 0.2"
