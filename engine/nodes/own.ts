/** Node classes that ComfyUI does not have. They come with the engine like the built-in ones. */
import type { EngineNode } from '../node/define-node.ts'
import { runModel } from './run-model-node.ts'

export const OWN_NODES: readonly EngineNode[] = [runModel]
