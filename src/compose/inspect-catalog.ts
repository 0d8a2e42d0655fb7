/** The catalogue without a service: what the command line asks of folders of model files. Nothing is opened or dispatched. */
import { checkLocalRules } from '../adapters/providers/local/rules.ts'
import { checkSandboxModel } from '../adapters/providers/sandbox/provider.ts'
import type { Model } from '../domain/models/model.ts'
import { BUILT_IN_CATALOG, type CatalogProblem, judgeFiles, readCatalogFolders } from './open-models.ts'

export { BUILT_IN_CATALOG }

export interface InspectedCatalog {
  readonly models: readonly Model[]
  readonly problems: readonly CatalogProblem[]
}

const CHECKS = { sandbox: checkSandboxModel, local: checkLocalRules }

export async function inspectCatalog(folders: readonly string[]): Promise<InspectedCatalog> {
  return judgeFiles(await readCatalogFolders(folders), { checks: CHECKS, isThorough: true })
}
