#!/bin/sh
# ranks.sh COUNT PROGRAM [ARG ...]: starts it COUNT times, each with its rank as a last argument.
count=$1 rank=0 pids=
shift
while [ $rank -lt "$count" ]; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$count "$@" $rank &
    pids="$pids $!" rank=$((rank + 1))
done
status=0
for pid in $pids; do wait "$pid" || status=$?; done
exit $status
