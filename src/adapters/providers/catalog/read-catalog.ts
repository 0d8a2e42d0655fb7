/**
 * A catalogue from the texts of its files: providers, models, and all problems, each with its file and field. It does no I/O, so
 * that `models lint`, a start and a reload come to the same result. A catalogue with a problem must not be used: models would be
 * missing from it.
 */

import { findUnknownFields } from '../../../domain/models/catalog/image-form.ts'
import { isRecord, type Json, type Model } from '../../../domain/models/catalog/model.ts'
import type { CompileSchema } from '../../../domain/models/catalog/model-catalog.ts'
import { readModel } from '../../../domain/models/catalog/read-model.ts'
import type { PartnerRoute } from '../../../domain/models/partner/partner-route.ts'
import { compileOutcomes, type ProviderRules } from '../declarative/rules/rule-types.ts'
import { checkAdapterShape, checkModelRules, checkProviderShape } from '../declarative/rules/rules-schema.ts'
import type { CatalogFile } from './catalog-files.ts'
import { checkAlternate } from './check-alternates.ts'
import { readPartnerRoutes } from './read-partner-routes.ts'

export interface CatalogProblem {
  readonly file: string
  readonly problem: string
}

export interface ReadCatalog {
  readonly providers: readonly ProviderRules[]
  readonly models: readonly Model[]
  /** The paths that partner nodes call. */
  readonly routes: readonly PartnerRoute[]
  readonly problems: readonly CatalogProblem[]
}

interface ReadCatalogDeps {
  readonly compileSchema: CompileSchema
  /** Providers that need no file of their own, such as `sandbox`: what is wrong with a model of theirs. */
  readonly builtIn: Readonly<Record<string, (model: Model) => readonly string[]>>
  /** Files that were checked before, such as the shipped ones: checking all of them again would slow down every start. */
  readonly isChecked?: (file: string) => boolean
}

const PROVIDER_FILE = 'provider.json'
const ROUTES_FILE = 'nodes.json'

export function readCatalog(files: readonly CatalogFile[], deps: ReadCatalogDeps): ReadCatalog {
  const problems: CatalogProblem[] = []
  const note = (file: string, found: readonly string[]) => {
    for (const problem of found) problems.push({ file, problem })
  }
  const parsed = files.flatMap(({ file, text }) => {
    const { document, problem } = parse(text)
    if (problem !== null) note(file, [problem])
    return problem === null ? [{ file, document }] : []
  })
  const providers = readProviders(parsed, note, deps)
  const models = readModels(parsed, note, (provider) => Object.hasOwn(deps.builtIn, provider))
  for (const { file, model } of models) {
    note(file, checkOne(model, file, { ...deps, providers }))
    note(file, checkSuccessor(model, models))
  }
  const ids = models.map(({ model }) => model.id)
  for (const { file, model } of models) {
    if (ids.indexOf(model.id) !== ids.lastIndexOf(model.id)) note(file, [`id ${model.id} is in several files`])
  }
  const found = models.map(({ model }) => model)
  const { compileSchema } = deps
  for (const { file, model } of models) {
    if (deps.isChecked?.(file) !== true) note(file, checkAlternate(model, { models: found, compileSchema }))
  }
  const routes = readRoutes(parsed, note, { ...deps, providers, models: found })
  return { providers: [...providers.values()], models: found, routes, problems }
}

interface ParsedFile {
  readonly file: string
  readonly document: Json
}

type Note = (file: string, problems: readonly string[]) => void

function parse(text: string): { readonly document: Json; readonly problem: string | null } {
  try {
    return { document: JSON.parse(text) as Json, problem: null }
  } catch (error) {
    return { document: null, problem: `is no JSON: ${error instanceof Error ? error.message : 'it cannot be read'}` }
  }
}

function readProviders(
  files: readonly ParsedFile[],
  note: Note,
  { isChecked }: Pick<ReadCatalogDeps, 'isChecked'>,
): Map<string, ProviderRules> {
  const providers = new Map<string, ProviderRules>()
  for (const { file, document } of files) {
    const [folder, name] = file.split('/')
    if (name !== PROVIDER_FILE) continue
    const problems = isChecked?.(file) === true ? [] : checkProvider(document, folder)
    note(file, problems)
    if (problems.length === 0) providers.set(folder, document as unknown as ProviderRules)
  }
  return providers
}

function checkProvider(document: Json, folder: string): string[] {
  const shape = checkProviderShape(document)
  if (shape.length > 0) return shape.map(({ path, problem }) => `${path === '' ? 'the file' : path} ${problem}`)
  const rules = document as unknown as ProviderRules
  const problems = rules.provider === folder ? [] : [`provider is ${rules.provider}, but the folder is ${folder}`]
  if (!URL.canParse(rules.base_url)) problems.push('base_url is not an address')
  try {
    compileOutcomes(rules.outcomes)
  } catch (error) {
    problems.push(`outcomes ${error instanceof Error ? error.message : 'cannot be read'}`)
  }
  return problems
}

interface FoundModel {
  readonly file: string
  readonly model: Model
}

function readModels(files: readonly ParsedFile[], note: Note, isBuiltIn: (provider: string) => boolean): FoundModel[] {
  return files.flatMap(({ file, document }) => {
    if (file.endsWith(`/${PROVIDER_FILE}`) || file.endsWith(`/${ROUTES_FILE}`)) return []
    const { model, problems } = readModel(document)
    note(file, problems)
    if (model !== null) return [{ file, model }]
    // Problems further down are reported too, so that a file can be fixed in one go.
    const adapter = isRecord(document) ? document['adapter'] : undefined
    if (adapter !== undefined && !isBuiltIn(file.split('/', 1)[0])) note(file, checkAdapterShape(adapter))
    return []
  })
}

interface CheckContext extends ReadCatalogDeps {
  readonly providers: ReadonlyMap<string, ProviderRules>
}

function readRoutes(
  files: readonly ParsedFile[],
  note: Note,
  { providers, models, isChecked }: CheckContext & { readonly models: readonly Model[] },
): PartnerRoute[] {
  const prices = new Map(models.map(({ id, price }) => [id, price]))
  return files.flatMap(({ file, document }) => {
    const [folder, name] = file.split('/')
    if (name !== ROUTES_FILE) return []
    const rules = providers.get(folder)
    if (rules === undefined) {
      note(file, [`there is no usable ${folder}/${PROVIDER_FILE} beside it`])
      return []
    }
    const priceOf = (id: string) => prices.get(id) ?? null
    const { routes, problems } = readPartnerRoutes(document, { rules, priceOf, isChecked: isChecked?.(file) === true })
    note(file, problems)
    return routes
  })
}

function checkOne(model: Model, file: string, context: CheckContext): string[] {
  const problems = file === `${model.id}.json` ? [] : [`id is ${model.id}, so the file must be ${model.id}.json`]
  if (context.isChecked?.(file) !== true)
    return [...problems, ...checkAdapter(model, context), ...checkSchema(model, context), ...checkImages(model)]
  // Even a checked model is checked against the rules of its provider where an operator has replaced them.
  const hasOwnRules =
    context.isChecked(`${model.provider}/${PROVIDER_FILE}`) || Object.hasOwn(context.builtIn, model.provider)
  return hasOwnRules ? problems : [...problems, ...checkAdapter(model, context)]
}

function checkAdapter(model: Model, context: CheckContext): readonly string[] {
  const ofChat = model.chat == null ? [] : checkOneAdapter(model.chat.model, context)
  return [...checkOneAdapter(model, context), ...ofChat.map((problem) => `chat: ${problem}`)]
}

function checkOneAdapter(model: Model, { builtIn, providers }: CheckContext): readonly string[] {
  const own = Object.hasOwn(builtIn, model.provider) ? builtIn[model.provider] : undefined
  if (own !== undefined) return own(model)
  const rules = providers.get(model.provider)
  if (rules === undefined) return [`there is no usable ${model.provider}/${PROVIDER_FILE} beside it`]
  return checkModelRules(model, rules)
}

/** The published schema is the one that is enforced, so the example that readers copy must pass it. */
function checkSchema({ input, state }: Model, { compileSchema }: CheckContext): string[] {
  if (input.schema === null) return []
  try {
    const check = compileSchema(input.schema)
    const failures = input.example === null || state === 'retired' ? [] : check(input.example)
    return failures.map(({ loc, msg }) => `input.example.${loc.slice(1).join('.')} ${msg}`)
  } catch (error) {
    return [`input.schema ${error instanceof Error ? error.message : 'cannot be compiled'}`]
  }
}

function checkImages({ images, input }: Model): string[] {
  const unknown = images == null ? [] : findUnknownFields(images, input.schema)
  return unknown.map((name) => `images names ${name}, which is no field of the input`)
}

function checkSuccessor({ successor }: Model, models: readonly FoundModel[]): string[] {
  if (successor === null || models.some(({ model }) => model.id === successor && model.state !== 'retired')) return []
  return [`successor ${successor} is not a model of this catalogue`]
}
