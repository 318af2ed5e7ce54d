#!/bin/sh
# The bundled programs, one after the other; there is a training step for GPUs of NVIDIA only.
here=${0%/*}
case $SIMGPU in
mi*) ;;
*) "$here/demo-step" || exit ;;
esac
exec "$here/demo-stencil"
