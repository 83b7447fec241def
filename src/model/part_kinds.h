// The kinds of part: what each of them gives to the walk through the layers. A kind KIND is data in layers.h,
// an alternative of PartBody, and a file KIND_stages.cc with the two functions below, which say what memory
// it needs and list its stages (stages.h says what a stage may do). Nothing else knows it.
#pragma once

#include "kvasir/result.h"
#include "model/layers.h"
#include "model/stages.h"
#include "model/workspace.h"

namespace kvasir::model {

// Grows a kind's scratch in the workspace to what this part needs in the largest pass. kOutOfMemory; may
// throw std::bad_alloc.
[[nodiscard]] Status reserve(const Attention& part, Workspace& workspace);
[[nodiscard]] Status reserve(const LatentAttention& part, Workspace& workspace);
[[nodiscard]] Status reserve(const CrossAttention& part, Workspace& workspace);
[[nodiscard]] Status reserve(const FeedForward& part, Workspace& workspace);
[[nodiscard]] Status reserve(const Experts& part, Workspace& workspace);
[[nodiscard]] Status reserve(const Mamba& part, Workspace& workspace);
[[nodiscard]] Status reserve(const Mamba2& part, Workspace& workspace);
[[nodiscard]] Status reserve(const GatedConvolution& part, Workspace& workspace);
[[nodiscard]] Status reserve(const GatedDelta& part, Workspace& workspace);
[[nodiscard]] Status reserve(const TimeMix6& part, Workspace& workspace);
[[nodiscard]] Status reserve(const TimeMix7& part, Workspace& workspace);
[[nodiscard]] Status reserve(const ChannelMix& part, Workspace& workspace);

// Adds the stages that take workspace.normed to workspace.product. The part outlives them.
void add_stages(const Attention& part, StageList& stages);
void add_stages(const LatentAttention& part, StageList& stages);
void add_stages(const CrossAttention& part, StageList& stages);
void add_stages(const FeedForward& part, StageList& stages);
void add_stages(const Experts& part, StageList& stages);
void add_stages(const Mamba& part, StageList& stages);
void add_stages(const Mamba2& part, StageList& stages);
void add_stages(const GatedConvolution& part, StageList& stages);
void add_stages(const GatedDelta& part, StageList& stages);
void add_stages(const TimeMix6& part, StageList& stages);
void add_stages(const TimeMix7& part, StageList& stages);
void add_stages(const ChannelMix& part, StageList& stages);

}  // namespace kvasir::model
