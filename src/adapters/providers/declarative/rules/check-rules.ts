/** Problems in a model's rules: their shape, paths and patterns that cannot be parsed, and names that have no value. */

import { writeJsonPath } from '../../../../domain/models/catalog/json-path.ts'
import type { Model } from '../../../../domain/models/catalog/model.ts'
import { findOtherDefaults } from '../../../../domain/models/pricing/price-rule.ts'
import { compileModel } from './compile-model.ts'
import type { ModelRules, OperationRules, ProviderRules } from './rule-types.ts'
import { checkModelShape } from './rules-schema.ts'
import { namesIn } from './text-template.ts'

export function checkModelRules(model: Model, provider: ProviderRules): string[] {
  const shape = checkAdapterShape(model.adapter)
  if (shape.length > 0) return shape
  const rules = model.adapter as unknown as ModelRules
  try {
    compileModel(model, provider)
  } catch (error) {
    return [`adapter ${error instanceof Error ? error.message : 'cannot be read'}`]
  }
  return [
    ...rules.operations.flatMap((operation, index) =>
      checkOperation(operation, `adapter.operations[${index}]`, { model, provider }),
    ),
    ...checkReturns(model, rules),
    ...checkCost(rules),
  ]
}

/** The problems that show without the rest of the model. */
export function checkAdapterShape(adapter: unknown): string[] {
  return checkModelShape(adapter).map(({ path, problem }) => `${joinPath('adapter', path)} ${problem}`)
}

function joinPath(parent: string, path: string): string {
  return path === '' || path.startsWith('[') ? `${parent}${path}` : `${parent}.${path}`
}

function checkReturns(model: Model, { operations, assets }: ModelRules): string[] {
  const problems: string[] = []
  const isPolled = operations.some(({ returns }) => returns === 'task')
  if (isPolled !== (model.returns === 'poll')) {
    problems.push(`returns must be ${isPolled ? 'poll' : 'direct'}, as the operations say`)
  }
  if (assets.length === 0 && operations.some(({ returns }) => returns !== 'bytes')) {
    problems.push('adapter.assets must name where the output is: nothing else proves that a call succeeded')
  }
  for (const leaf of model.hosting?.leaves ?? []) {
    if (!assets.includes(leaf)) problems.push(`hosting.leaves names ${leaf}, which is none of adapter.assets`)
  }
  if (operations.at(-1)?.when !== undefined && operations.every(({ when }) => when !== undefined)) {
    problems.push('adapter.operations: the last one should fit every input that the others leave')
  }
  return problems
}

function checkCost({ cost, operations }: ModelRules): string[] {
  const kept = cost?.kept
  if (kept === undefined || operations.some(({ task }) => Object.hasOwn(task?.keep ?? {}, kept))) return []
  return [`adapter.cost.kept names ${kept}, which no task keeps`]
}

interface OperationContext {
  readonly model: Model
  readonly provider: ProviderRules
}

function checkOperation(operation: OperationRules, where: string, { model, provider }: OperationContext): string[] {
  const { task, returns } = operation
  const problems: string[] = []
  if ((returns === 'task') !== (task !== undefined))
    problems.push(`${where}.task is for operations that return a task, and only for them`)
  if (operation.media !== undefined && operation.encoding !== 'multipart')
    problems.push(`${where}.media needs encoding multipart`)
  const { inject = {} } = operation.body ?? {}
  for (const other of findOtherDefaults(model.price, (path) => inject[writeJsonPath(path)]))
    problems.push(`${where}.body.inject says that ${other}`)
  const fields = model.input.schema?.['properties'] ?? {}
  const known = ['model', 'submit_key', ...Object.keys(provider.settings ?? {}).map((name) => `setting.${name}`)]
  const inputs = Object.keys(fields ?? {}).map((field) => `input.${field}`)
  problems.push(...checkNames(operation.path, `${where}.path`, [...known, ...inputs]))
  if (task === undefined) return problems
  const kept = Object.keys(task.keep ?? {})
  const taken = Object.keys(task.result?.take ?? {})
  for (const [name, fetch, more] of [
    ['poll', task.poll, []],
    ['result', task.result, taken],
    ['cancel', task.cancel, []],
  ] as const) {
    if (fetch === undefined) continue
    if (fetch.path === undefined && fetch.url === undefined)
      problems.push(`${where}.task.${name} has neither path nor url`)
    if (fetch.path !== undefined)
      problems.push(...checkNames(fetch.path, `${where}.task.${name}.path`, [...known, 'id', ...kept, ...more]))
    if (fetch.url !== undefined && ![...kept, ...more].includes(fetch.url)) {
      problems.push(`${where}.task.${name}.url names ${fetch.url}, which is not kept`)
    }
  }
  if (task.find !== undefined) problems.push(...checkNames(task.find.path, `${where}.task.find.path`, known))
  return problems
}

function checkNames(text: string, where: string, known: readonly string[]): string[] {
  return namesIn(text)
    .filter((name) => !known.includes(name))
    .map(
      (name) =>
        `${where} names {${name}}, which has no value there; there are ${known.map((one) => `{${one}}`).join(', ')}`,
    )
}
