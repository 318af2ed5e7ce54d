#!/bin/sh
# vmaf.sh BINARY FOLDER WORK PYTHON: 1,440 frames of 1080p on the GPU; the clip, of 9 GB, is made once
set -e
frames=${FRAMES:-1440}
[ -e "$2/dist.yuv" ] || "$4" "$(dirname "$0")/clip.py" "$2" "$frames"
"$1" -r "$2/ref.yuv" -d "$2/dist.yuv" -w 1920 -h 1080 -p 420 -b 8 --gpumask 0 --json -o "$3/vmaf.json" -q
# the pooled score of the last metric, and the frames a second
grep -A4 '"vmaf": {' "$3/vmaf.json" | tail -5
grep '"fps"' "$3/vmaf.json"
