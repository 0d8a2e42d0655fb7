/** The entry of the thread that loads custom nodes once, at the start, and tells what they declare. It runs none of them. */
import { parentPort, workerData } from 'node:worker_threads'
import type { ModuleFile } from './custom-nodes.ts'
import type { NodeDeclaration } from './declaration.ts'
import { loadModule } from './load-modules.ts'
import { installModuleHooks, type SourceTexts } from './module-hooks.ts'

export interface DescribeThreadData {
  readonly folders: readonly string[]
  readonly modules: readonly ModuleFile[]
}

export type FromDescribe =
  | { readonly type: 'loading'; readonly module: ModuleFile }
  | { readonly type: 'loaded'; readonly module: ModuleFile; readonly nodes: readonly NodeDeclaration[] }
  | { readonly type: 'failed'; readonly module: ModuleFile; readonly reason: string }
  | { readonly type: 'done'; readonly sources: SourceTexts }

const port = parentPort
if (port === null) throw new Error('this module runs as a worker thread')
const { folders, modules } = workerData as DescribeThreadData
const post = (message: FromDescribe) => port.postMessage(message)

function toReason(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${String(error)}`
  } catch {
    return 'it threw something that has no text'
  }
}

async function describeAll(): Promise<void> {
  const sources = installModuleHooks(folders, null)
  for (const module of modules) {
    post({ type: 'loading', module })
    try {
      const nodes = await loadModule(module)
      post({ type: 'loaded', module, nodes: nodes.map(({ declaration }) => declaration) })
    } catch (error) {
      post({ type: 'failed', module, reason: toReason(error) })
      return
    }
  }
  post({ type: 'done', sources })
}

await describeAll()
