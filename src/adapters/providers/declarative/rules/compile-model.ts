/** A model's rules in executable form: paths, patterns and templates are parsed once, and errors in them are found here. */

import { type JsonPath, readJsonPath } from '../../../../domain/models/catalog/json-path.ts'
import type { Model } from '../../../../domain/models/catalog/model.ts'
import { type BodyWriter, compileBody } from '../request/write-body.ts'
import { type Classify, compileConditions, compileOutcomes, type InputTest } from './match-rules.ts'
import type { FetchRule, ModelRules, OperationRules, ProviderRules, RefuseRule, TaskRules } from './rule-types.ts'
import {
  compileJsonTemplate,
  compileTemplate,
  encodeForPath,
  namesIn,
  type Template,
  type TemplateValues,
} from './text-template.ts'

export interface CompiledFetch {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The name of the kept value that is the address; where it is missing, the path serves. */
  readonly urlFrom: string | null
  readonly path: Template | null
  readonly body: ((values: TemplateValues) => unknown) | null
}

export interface CompiledTask {
  readonly rules: TaskRules
  readonly id: JsonPath
  readonly keep: readonly (readonly [name: string, path: JsonPath])[]
  readonly poll: CompiledFetch
  readonly states: readonly (JsonPath | 'http_status')[]
  readonly meanings: ReadonlyMap<string, TaskState>
  readonly result:
    | (CompiledFetch & { readonly take: readonly (readonly [string, JsonPath])[]; readonly mergeAs: string | null })
    | null
  readonly cancel: CompiledFetch | null
  readonly find: CompiledFetch | null
}

export type TaskState = 'success' | 'failed' | 'policy' | 'timeout'
const TASK_STATES = ['success', 'failed', 'policy', 'timeout'] as const

export interface CompiledOperation {
  readonly rules: OperationRules
  readonly fits: InputTest
  /** Whether anything of a call stands in what is sent, other than its body. */
  readonly hasTemplates: boolean
  readonly path: Template
  readonly headers: readonly (readonly [name: string, write: Template])[]
  readonly body: BodyWriter
  readonly media: readonly (readonly [rule: NonNullable<OperationRules['media']>[number], path: JsonPath])[]
  readonly refuse: readonly (RefuseRule & { readonly where: JsonPath; readonly prefix: Template })[]
  readonly task: CompiledTask | null
}

export interface CompiledModel {
  readonly rules: ModelRules
  readonly operations: readonly CompiledOperation[]
  readonly assets: readonly JsonPath[]
  readonly classify: Classify
  readonly usage: JsonPath | null
  readonly cost: { readonly path: JsonPath; readonly kept: string | null; readonly microsPerUnit: number } | null
  readonly knownFields: ReadonlySet<string> | null
}

/** Throws with words about what is wrong. */
export function compileModel(model: Model, provider: ProviderRules): CompiledModel {
  const rules = model.adapter as unknown as ModelRules
  const properties = model.input.schema?.['properties']
  return {
    rules,
    operations: rules.operations.map((operation) => compileOperation(operation, model)),
    assets: rules.assets.map(readJsonPath),
    classify: compileOutcomes([...(rules.outcomes ?? []), ...provider.outcomes]),
    usage: rules.usage === undefined ? null : readJsonPath(rules.usage),
    cost:
      rules.cost === undefined
        ? null
        : {
            path: readJsonPath(rules.cost.path),
            kept: rules.cost.kept ?? null,
            microsPerUnit: rules.cost.micros_per_unit,
          },
    knownFields: properties === undefined || properties === null ? null : new Set(Object.keys(properties)),
  }
}

function compileOperation(rules: OperationRules, { input }: Model): CompiledOperation {
  const modelName = input.modelField === null ? {} : { [input.modelField]: '{model}' }
  const { path, headers, body, refuse } = rules
  const texts = JSON.stringify([path, headers, body, refuse, modelName, toReference(rules)])
  return {
    rules,
    fits: compileConditions(rules.when),
    hasTemplates: namesIn(texts).length > 0,
    path: compileTemplate(rules.path, encodeForPath),
    headers: Object.entries(rules.headers ?? {}).map(([name, text]) => [name, compileTemplate(text)]),
    body: compileBody({ ...rules.body, inject: { ...modelName, ...toReference(rules), ...rules.body?.inject } }),
    media: (rules.media ?? []).map((media) => [media, readJsonPath(media.path)]),
    refuse: (rules.refuse ?? []).map((refuse) => ({
      ...refuse,
      where: readJsonPath(refuse.path),
      prefix: compileTemplate(refuse.starts_with),
    })),
    task: rules.task === undefined ? null : compileTask(rules.task),
  }
}

/** The reference by which a task can be found again is sent with its submit. */
function toReference({ task }: OperationRules): Record<string, string> {
  return task?.find === undefined ? {} : { [task.find.field]: '{submit_key}' }
}

function compileTask(rules: TaskRules): CompiledTask {
  const { result } = rules
  return {
    rules,
    id: readJsonPath(rules.id),
    keep: toPaths(rules.keep),
    poll: compileFetch(rules.poll),
    states: rules.state.map((path) => (path === '@http_status' ? 'http_status' : readJsonPath(path))),
    meanings: new Map(
      TASK_STATES.flatMap((state) => (rules[state] ?? []).map((word) => [toWord(word), state] as const)),
    ),
    result:
      result === undefined
        ? null
        : { ...compileFetch(result), take: toPaths(result.take), mergeAs: result.merge_as ?? null },
    cancel: rules.cancel === undefined ? null : compileFetch(rules.cancel),
    find: rules.find === undefined ? null : compileFetch({ path: rules.find.path }),
  }
}

function toPaths(names: Readonly<Record<string, string>> = {}): (readonly [string, JsonPath])[] {
  return Object.entries(names).map(([name, path]) => [name, readJsonPath(path)])
}

function compileFetch({ method = 'GET', url, path, body }: FetchRule): CompiledFetch {
  return {
    method,
    urlFrom: url ?? null,
    path: path === undefined ? null : compileTemplate(path, encodeForPath),
    body: body === undefined ? null : compileJsonTemplate(body),
  }
}

/** How states are compared: providers differ in case and blanks, some even between their own answers. */
export function toWord(state: unknown): string {
  return String(state).trim().toLowerCase()
}
