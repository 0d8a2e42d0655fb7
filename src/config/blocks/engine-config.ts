/** The built-in engine: its threads, its memory, and the nodes that users wrote for it. */
import { availableParallelism, totalmem } from 'node:os'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface EngineConfig {
  readonly kind: 'embedded'
  readonly threads: number
  readonly memoryBytes: number
  readonly maxImagePixels: number
  /** Absolute. */
  readonly nodeFolders: readonly string[]
  readonly nodeTimeoutMs: number
}

// 16384 × 16384, the largest picture that ComfyUI's own nodes make. Larger ones are refused before they are decoded.
const MAX_IMAGE_PIXELS = 16_384 ** 2

export function toEngineConfig(values: SettingValues, toAbsolute: ToAbsolute): EngineConfig {
  return {
    kind: 'embedded',
    threads: values.engineThreads === 'auto' ? Math.max(1, availableParallelism() - 1) : values.engineThreads,
    memoryBytes:
      values.engineMemory === 'auto' ? Math.min(Math.floor(totalmem() / 2), 8 * 2 ** 30) : values.engineMemory,
    maxImagePixels: MAX_IMAGE_PIXELS,
    nodeFolders: values.nodes.map((folder) => toAbsolute('nodes', folder)),
    nodeTimeoutMs: values.nodeTimeout,
  }
}
