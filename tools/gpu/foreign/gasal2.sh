#!/bin/sh
# gasal2.sh BINARY FOLDER WORK: aligns the authors' sequences, eight times over, and prints a checksum of all scores.
set -e
cd "$3"
for side in query target; do
    for _ in 1 2 3 4 5 6 7 8; do zcat "$2/${side}_batch.fasta.gz"; done >"$side.fasta"
done
"$1" -y local -p query.fasta target.fasta >scores
sort scores | md5sum
