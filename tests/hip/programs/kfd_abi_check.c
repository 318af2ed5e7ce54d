/* Our layouts against those of the public headers: hsakmt's and HSA's. Compiles, or says which field differs. */
#if __has_include(<hsakmttypes.h>) /* `make lint` has none of these headers */
#include <stddef.h>

#include <hsakmttypes.h>

#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "hsa_abi.h"
#include "thunk_abi.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #theirs)
#define SAME(ours, field, theirs, member)                                                                              \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, member), "place of " #member);                            \
    _Static_assert(sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->member), "size of " #member)

SIZE(struct thunk_version, HsaVersionInfo);
SIZE(struct thunk_system, HsaSystemProperties);
SIZE(struct thunk_node, HsaNodeProperties);
SAME(struct thunk_node, simds, HsaNodeProperties, NumFComputeCores);
SAME(struct thunk_node, capability, HsaNodeProperties, Capability);
SAME(struct thunk_node, waves_per_simd, HsaNodeProperties, MaxWavesPerSIMD);
SAME(struct thunk_node, lds_kib, HsaNodeProperties, LDSSizeInKB);
SAME(struct thunk_node, wave_size, HsaNodeProperties, WaveFrontSize);
SAME(struct thunk_node, shader_engines, HsaNodeProperties, NumShaderBanks);
SAME(struct thunk_node, simds_per_cu, HsaNodeProperties, NumSIMDPerCU);
SAME(struct thunk_node, scratch_slots_per_cu, HsaNodeProperties, MaxSlotsScratchCU);
SAME(struct thunk_node, engine, HsaNodeProperties, EngineId);
SAME(struct thunk_node, location, HsaNodeProperties, LocationId);
SAME(struct thunk_node, local_memory, HsaNodeProperties, LocalMemSize);
SAME(struct thunk_node, render_minor, HsaNodeProperties, DrmRenderMinor);
SAME(struct thunk_node, marketing_name, HsaNodeProperties, MarketingName);
SAME(struct thunk_node, amd_name, HsaNodeProperties, AMDName);
SAME(struct thunk_node, hive, HsaNodeProperties, HiveID);
SAME(struct thunk_node, gws, HsaNodeProperties, NumGws);
SAME(struct thunk_node, unique_id, HsaNodeProperties, UniqueID);
SAME(struct thunk_node, sgpr_bytes_per_cu, HsaNodeProperties, SGPRSizePerCU);
SIZE(struct thunk_memory, HsaMemoryProperties);
SAME(struct thunk_memory, bytes, HsaMemoryProperties, SizeInBytes);
SAME(struct thunk_memory, base, HsaMemoryProperties, VirtualBaseAddress);
SIZE(struct thunk_cache, HsaCacheProperties);
SAME(struct thunk_cache, type, HsaCacheProperties, CacheType);
SIZE(struct thunk_link, HsaIoLinkProperties);
SAME(struct thunk_link, weight, HsaIoLinkProperties, Weight);
SIZE(struct thunk_queue, HsaQueueResource);
SAME(struct thunk_queue, read_index, HsaQueueResource, Queue_read_ptr_aql);
SIZE(struct thunk_event_descriptor, HsaEventDescriptor);
SIZE(struct thunk_event, HsaEvent);
SAME(struct thunk_event, mailbox, HsaEvent, EventData.HWData2);
SIZE(struct thunk_clocks, HsaClockCounters);
SIZE(struct thunk_tiles, HsaGpuTileConfig);
SIZE(struct thunk_pointer, HsaPointerInfo);
SAME(struct thunk_pointer, device, HsaPointerInfo, GPUAddress);
SAME(struct thunk_pointer, user_data, HsaPointerInfo, UserData);

_Static_assert((int)THUNK_WAIT_TIMEOUT == (int)HSAKMT_STATUS_WAIT_TIMEOUT, "status");
_Static_assert((int)THUNK_NOT_SUPPORTED == (int)HSAKMT_STATUS_NOT_SUPPORTED, "status");
_Static_assert((int)HEAP_MMIO_REMAP == (int)HSA_HEAPTYPE_MMIO_REMAP, "heap");
_Static_assert((int)LINK_XGMI == (int)HSA_IOLINK_TYPE_XGMI, "link");
_Static_assert((int)QUEUE_AQL == (int)HSA_QUEUE_COMPUTE_AQL, "queue");
_Static_assert((int)POINTER_REGISTERED == (int)HSA_POINTER_REGISTERED_USER, "pointer");

SIZE(struct signal, amd_signal_t);
SAME(struct signal, value, amd_signal_t, value);
SAME(struct signal, mailbox, amd_signal_t, event_mailbox_ptr);
SAME(struct signal, event, amd_signal_t, event_id);
SAME(struct signal, end, amd_signal_t, end_ts);
SIZE(struct hardware_queue, amd_queue_t);
SAME(struct hardware_queue, read_index, amd_queue_t, read_dispatch_id);
SAME(struct hardware_queue, inactive_signal, amd_queue_t, queue_inactive_signal);
SAME(union packet, kernel.group_segment, hsa_kernel_dispatch_packet_t, group_segment_size);
SAME(union packet, kernel.kernel_object, hsa_kernel_dispatch_packet_t, kernel_object);
SAME(union packet, kernel.completion, hsa_kernel_dispatch_packet_t, completion_signal);
SAME(union packet, any.completion, hsa_barrier_and_packet_t, completion_signal);
SAME(union packet, barrier.signals, hsa_barrier_and_packet_t, dep_signal);
SAME(union packet, barrier_value.value, hsa_amd_barrier_value_packet_t, value);
SAME(union packet, barrier_value.condition, hsa_amd_barrier_value_packet_t, cond);
SAME(union packet, barrier_value.completion, hsa_amd_barrier_value_packet_t, completion_signal);
_Static_assert((int)PACKET_BARRIER_OR == (int)HSA_PACKET_TYPE_BARRIER_OR, "packet");
_Static_assert((int)VENDOR_BARRIER_VALUE == (int)HSA_AMD_PACKET_TYPE_BARRIER_VALUE, "packet");
#endif
