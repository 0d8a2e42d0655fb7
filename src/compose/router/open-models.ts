/**
 * The catalogue and its providers. Both are read from the same folders, and a reload replaces both or neither. Calls under way
 * keep the model and the provider they began with; a replaced provider is closed when its last call has ended.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../../lib/clock.ts'
import { type Log, silentLog } from '../../../lib/log.ts'
import type { Network } from '../../../lib/outbound/network.ts'
import { readEmbeddedCatalog } from '../../adapters/engines/embedded/engine.ts'
import {
  type CatalogFile,
  CatalogFolderError,
  listCatalogFiles,
  readCatalogFiles,
} from '../../adapters/providers/catalog/catalog-files.ts'
import { type CatalogProblem, type ReadCatalog, readCatalog } from '../../adapters/providers/catalog/read-catalog.ts'
import { checkSandboxModel } from '../../adapters/providers/sandbox/sandbox-provider.ts'
import { createCompileSchema } from '../../adapters/schemas/ajv-input.ts'
import type { EngineConfig } from '../../config/blocks/fleet-config.ts'
import type { RouterConfig } from '../../config/blocks/router-config.ts'
import { checkLocalModel } from '../../domain/endpoints/local/local-rules.ts'
import type { Routing } from '../../domain/models/alternates/serving.ts'
import type { CallStore } from '../../domain/models/calls/call-store.ts'
import type { FetchResultMedia, HostAssets } from '../../domain/models/calls/conclude-call.ts'
import type { Model } from '../../domain/models/catalog/model.ts'
import {
  type Catalog,
  type CompileSchema,
  createCatalog,
  toCatalogued,
} from '../../domain/models/catalog/model-catalog.ts'
import { createPartnerRoutes, type PartnerRoutes } from '../../domain/models/partner/partner-route.ts'
import type { Provider } from '../../domain/models/provider.ts'
import { createWatch } from '../process/watch-paths.ts'

/** Opens a provider from its rules. */
export type OpenProvider = (rules: ReadCatalog['providers'][number]) => Provider & AsyncDisposable

/** Parts that tests replace. */
export interface ModelOverrides {
  /** Added to the providers that come with the service; one of the same name replaces it. */
  readonly providers?: readonly Provider[]
  /** Further models. */
  readonly models?: readonly Model[]
  readonly hostAssets?: HostAssets
  /** Which addresses in answers and inputs may be called, and how names are resolved. */
  readonly network?: Network
  /** A store that can stop at a chosen step. */
  readonly wrapCalls?: (calls: CallStore) => CallStore
}

/** Keys and settings of providers; a reload replaces them together with the catalogue. */
export interface OperatorFile {
  /** null: they are in no file of their own and change only with a restart. */
  readonly file: string | null
  /** The present settings, to be used if the rest of the catalogue has no fault; or what is wrong with them. */
  read(): Promise<{ use(): void } | CatalogProblem>
  /** Changes when the settings of the provider change. */
  of(provider: string): string
}

interface ModelsParts {
  readonly clock: Clock
  readonly log: Log
  readonly builtIn: readonly Provider[]
  readonly openProvider: OpenProvider
  readonly settings: OperatorFile
  readonly hostAssets: HostAssets
  readonly fetchMedia: FetchResultMedia
  readonly routingOf: (modelId: string) => Routing
  /** Models in addition to those in the folders. */
  readonly models: readonly Model[]
}

export type ReloadOutcome =
  | { readonly outcome: 'reloaded'; readonly models: number }
  /** Nothing was changed. */
  | { readonly outcome: 'refused'; readonly problems: readonly CatalogProblem[] }

export interface OpenedModels extends AsyncDisposable {
  catalog(): Catalog
  /** The paths that partner nodes call. */
  routes(): PartnerRoutes
  providerOf(name: string): Provider | null
  readonly hostAssets: HostAssets
  readonly fetchMedia: FetchResultMedia
  /** How the operator wants the providers of a model to be chosen. */
  readonly routingOf: (modelId: string) => Routing
  reload(): Promise<ReloadOutcome>
  /** Reads everything again whenever something in the folders, or in the file of the settings, changes. */
  watchFolders(): void
  /** Called after providers were replaced; resolves when all calls that began before have ended. */
  onReplaced(untilEnded: () => Promise<void>): void
}

class CatalogError extends Error {
  readonly problems: readonly CatalogProblem[]
  constructor(problems: readonly CatalogProblem[]) {
    const [{ file, problem }, ...others] = problems
    const more = others.length === 0 ? '' : ` (and ${others.length} more: see \`atelier models lint\`)`
    super(`the model catalogue cannot be used: ${file}: ${problem}${more}`)
    this.name = 'CatalogError'
    this.problems = problems
  }
}

/** The models that come with the service. */
const BUILT_IN_CATALOG = fileURLToPath(new URL('../../../models', import.meta.url))

// How many problems, and how many files, one log line names.
const MAX_LOGGED = 20

interface Opened {
  readonly catalog: Catalog
  readonly routes: PartnerRoutes
  readonly providers: ReadonlyMap<string, OpenedProvider>
}

interface OpenedProvider {
  readonly provider: Provider
  /** What it was made of: a provider with unchanged rules is kept on reload. */
  readonly rules: string
  readonly close: (() => Promise<void>) | null
}

/** Reads all folders; a model in a later folder replaces one of the same name in an earlier folder. */
async function readCatalogFolders(folders: readonly string[]): Promise<FoundFiles> {
  const files = new Map<string, FoundFile>()
  const problems: CatalogProblem[] = []
  for (const folder of folders) {
    try {
      for (const file of await readCatalogFiles(folder)) files.set(file.file, { ...file, folder })
    } catch (error) {
      if (!(error instanceof CatalogFolderError)) throw error
      problems.push({ file: folder, problem: error.message })
    }
  }
  return { files: [...files.values()], problems }
}

/** The folders that may change while the service runs; the models that come with it do not change. */
async function listWatched(catalogs: readonly string[], settingsFile: string | null): Promise<string[]> {
  const files = settingsFile === null ? [] : [settingsFile]
  for (const folder of catalogs) for (const file of await listCatalogFiles(folder)) files.push(join(folder, file))
  return files
}

interface FoundFiles {
  readonly files: readonly FoundFile[]
  /** Problems of whole folders. */
  readonly problems: readonly CatalogProblem[]
}

interface FoundFile extends CatalogFile {
  readonly folder: string
}

interface JudgeOptions {
  /** What is wrong with models of providers that need no rules, by the provider's name. */
  readonly checks: Readonly<Record<string, (model: Model) => readonly string[]>>
  /** Also checks the schemas of the shipped models. A start skips them, because the tests have checked them. */
  readonly isThorough: boolean
  readonly compileSchema?: CompileSchema
}

function judgeFiles({ files, problems }: FoundFiles, options: JudgeOptions): ReadCatalog {
  const { checks, isThorough, compileSchema = createCompileSchema() } = options
  const ours = new Set(files.filter(({ folder }) => folder === BUILT_IN_CATALOG).map(({ file }) => file))
  const isChecked = (file: string) => !isThorough && ours.has(file)
  const read = readCatalog(files, { compileSchema, builtIn: checks, isChecked })
  return { ...read, problems: [...problems, ...read.problems] }
}

type CatalogConfig = Pick<RouterConfig, 'catalogs' | 'hasSandbox'>

export async function openModels({ catalogs, hasSandbox }: CatalogConfig, parts: ModelsParts): Promise<OpenedModels> {
  const { clock, log, builtIn, settings } = parts
  const folders = [BUILT_IN_CATALOG, ...catalogs]
  const compileSchema = createCompileSchema()
  const checks = Object.fromEntries(
    builtIn.map((provider) => [provider.name, (model: Model) => provider.checkModel(model)]),
  )
  const judge = async () => judgeFiles(await readCatalogFolders(folders), { checks, isThorough: false, compileSchema })
  const opens = { ...parts, hasSandbox, compileSchema }
  const watch = createWatch({ list: () => listWatched(catalogs, settings.file), onChanged, clock })
  await watch.note()
  const first = await readAll(settings, judge)
  if ('problems' in first) throw new CatalogError(first.problems)
  let current = openCatalog(first.read, null, opens)
  if (catalogs.length > 0) log.info({ models: current.catalog.size, folders }, 'the model catalogue was read')
  let untilEnded: () => Promise<void> = async () => {}
  const retiring = new Set<Promise<void>>()
  let reloading: Promise<unknown> = Promise.resolve()

  function retire(before: Opened, after: Opened): void {
    const kept = new Set([...after.providers.values()])
    const replaced = [...before.providers.values()].filter((opened) => !kept.has(opened))
    const ended = untilEnded().then(async () => {
      for (const { close } of replaced) await close?.()
    })
    retiring.add(ended)
    void ended.finally(() => retiring.delete(ended))
  }

  /** Reloads run one after the other: of two at once, the one that began to read earlier could win. */
  function reload(): Promise<ReloadOutcome> {
    const next = reloading.then(exchange, exchange)
    reloading = next
    return next
  }

  async function exchange(): Promise<ReloadOutcome> {
    const changed = (await watch.note()).slice(0, MAX_LOGGED)
    const now = await readAll(settings, judge)
    if ('problems' in now) {
      const problems = now.problems.slice(0, MAX_LOGGED)
      log.error({ changed, problems }, 'the model catalogue was not reloaded: it has problems')
      return { outcome: 'refused', problems: now.problems }
    }
    const before = current
    current = openCatalog(now.read, before, opens)
    retire(before, current)
    log.info({ models: current.catalog.size, folders, changed }, 'the model catalogue was reloaded')
    return { outcome: 'reloaded', models: current.catalog.size }
  }

  function onChanged(): void {
    reload().catch((error: unknown) => log.error({ err: error }, 'the model catalogue could not be read again'))
  }

  return {
    catalog: () => current.catalog,
    routes: () => current.routes,
    providerOf: (name) => current.providers.get(name)?.provider ?? null,
    hostAssets: parts.hostAssets,
    fetchMedia: parts.fetchMedia,
    routingOf: parts.routingOf,
    reload,
    watchFolders() {
      if (catalogs.length > 0 || settings.file !== null) watch.start()
    },
    onReplaced(listener) {
      untilEnded = listener
    },
    async [Symbol.asyncDispose]() {
      await watch[Symbol.asyncDispose]()
      await reloading.catch(() => {})
      await Promise.all(retiring)
      for (const { close } of current.providers.values()) await close?.()
    },
  }
}

interface OpenParts extends ModelsParts {
  readonly hasSandbox: boolean
  readonly compileSchema: CompileSchema
}

function openCatalog(read: ReadCatalog, before: Opened | null, parts: OpenParts): Opened {
  const { clock, builtIn, openProvider, settings, hasSandbox, compileSchema } = parts
  const providers = new Map<string, OpenedProvider>(
    builtIn.map((provider) => [provider.name, { provider, rules: '', close: null }]),
  )
  for (const rules of read.providers) {
    const text = JSON.stringify(rules) + settings.of(rules.provider)
    const same = before?.providers.get(rules.provider)
    if (same?.rules === text) providers.set(rules.provider, same)
    else {
      const provider = openProvider(rules)
      providers.set(rules.provider, { provider, rules: text, close: async () => provider[Symbol.asyncDispose]() })
    }
  }
  const offered = read.models.filter(({ provider }) => hasSandbox || provider !== 'sandbox')
  const entries = [...offered, ...parts.models].map((model) => toCatalogued(model, compileSchema))
  const routes = createPartnerRoutes(read.routes)
  return { catalog: createCatalog(entries, clock.now(), routes.models), routes, providers }
}

/** Reads the catalogue and the settings of providers, and uses both when neither has a fault. */
async function readAll(
  file: OperatorFile,
  judge: () => Promise<ReadCatalog>,
): Promise<{ readonly read: ReadCatalog } | { readonly problems: readonly CatalogProblem[] }> {
  const settings = await file.read()
  const read = await judge()
  if (!('use' in settings)) return { problems: [settings, ...read.problems] }
  if (read.problems.length > 0) return { problems: read.problems }
  settings.use()
  return { read }
}

/** Reads and checks folders of model files for the command line, without a service: no provider is opened and no call is made. */
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
