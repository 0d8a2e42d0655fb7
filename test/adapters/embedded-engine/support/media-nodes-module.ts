/** The audio, video and file classes in the form in which an engine loads further nodes. */
import type { EngineNode } from '../../../../src/adapters/engines/embedded/define-node.ts'
import { audioNodes } from '../../../../src/adapters/engines/embedded/nodes/audio-nodes.ts'
import { filesNodes } from '../../../../src/adapters/engines/embedded/nodes/files-nodes.ts'
import { videoNodes } from '../../../../src/adapters/engines/embedded/nodes/video-nodes.ts'

export const nodes: readonly EngineNode[] = [...audioNodes, ...videoNodes, ...filesNodes]
