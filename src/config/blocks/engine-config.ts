/** The built-in engine: its threads, its memory, and the nodes that users wrote for it. */
import { availableParallelism, totalmem } from 'node:os'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type EngineConfig = ReturnType<typeof toEngineConfig>

export function toEngineConfig(values: SettingValues, toAbsolute: ToAbsolute) {
  const { engineThreads: threads, engineMemory: memory } = values
  return {
    threads: threads === 'auto' ? Math.max(1, availableParallelism() - 1) : threads,
    memoryBytes: memory === 'auto' ? Math.min(Math.floor(totalmem() / 2), 8 * 2 ** 30) : memory,
    /** 16384 × 16384, the largest picture that ComfyUI's own nodes make. Larger ones are refused before they are decoded. */
    maxImagePixels: 16_384 ** 2,
    /** Absolute. */
    nodeFolders: values.nodes.map((folder) => toAbsolute('nodes', folder)),
    nodeTimeoutMs: values.nodeTimeout,
  }
}
