/** Reads and checks folders of model files for the command line, without a service: no provider is opened and no call is made. */
import { silentLog } from '../../../lib/log.ts'
import { readEmbeddedCatalog } from '../../adapters/engines/embedded/engine.ts'
import { checkLocalModel } from '../../adapters/providers/local/local-rules.ts'
import { checkSandboxModel } from '../../adapters/providers/sandbox/sandbox-provider.ts'
import type { EngineConfig } from '../../config/blocks/engine-config.ts'
import type { Model } from '../../domain/models/catalog/model.ts'
import { BUILT_IN_CATALOG, type CatalogProblem, judgeFiles, readCatalogFolders } from './open-models.ts'

export interface InspectedCatalog {
  readonly models: readonly Model[]
  readonly problems: readonly CatalogProblem[]
}

interface InspectOptions {
  readonly folders: readonly string[]
  /** Folders of custom nodes, which workflows that are published as models may use. */
  readonly engine: Pick<EngineConfig, 'nodeFolders' | 'nodeTimeoutMs'>
}

/** Throws NodeModuleError. */
export async function inspectCatalog({ folders, engine }: InspectOptions): Promise<InspectedCatalog> {
  const customNodes = { folders: engine.nodeFolders, timeoutMs: engine.nodeTimeoutMs }
  const catalog = await readEmbeddedCatalog({ customNodes, log: silentLog })
  const checks = { sandbox: checkSandboxModel, local: (model: Model) => checkLocalModel(model, catalog) }
  return judgeFiles(await readCatalogFolders([BUILT_IN_CATALOG, ...folders]), { checks, isThorough: true })
}
