/**
 * Which rule fits: the conditions of an operation for an input, and the outcome rules for an answer. Fields that are null count
 * as left out.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { readJsonPath, someValue } from '../../../../domain/models/catalog/json-path.ts'
import type { Condition, Meaning, Occasion, OutcomeRule } from './rule-types.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The parsed body; a text when it is no JSON. */
  readonly document: unknown
}

/** null: no rule speaks. */
export type Classify = (answer: Answer, occasion: Occasion, hasOutput?: boolean) => Meaning | null

/** What an answer means, by the provider's rules; where none speaks, its HTTP status does (`meaningOfStatus`). */
export function compileOutcomes(rules: readonly OutcomeRule[]): Classify {
  const tests = rules.map((rule) => ({ ...rule, fits: compileRule(rule), on: rule.on ?? ['error', 'failed'] }))
  return (answer, occasion, hasOutput = false) => {
    const found = tests.find(
      ({ on, despite_output, fits }) =>
        on.includes(occasion) && (!hasOutput || despite_output === true) && fits(answer),
    )
    return found?.is ?? null
  }
}

function compileRule({ status, path, header, match }: OutcomeRule): (answer: Answer) => boolean {
  const where = path === undefined ? null : readJsonPath(path)
  const pattern = match === undefined ? null : new RegExp(match, 'iu')
  const holds = (value: unknown) => (pattern === null ? !isEmpty(value) : pattern.test(toText(value)))
  const holdsThere = (value: unknown) => !isEmpty(value) && holds(value)
  return (answer) =>
    (status === undefined || status.includes(answer.status)) &&
    (header === undefined || holds(answer.headers[header])) &&
    (where === null || someValue(answer.document, where, holdsThere))
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

const BY_STATUS: Readonly<Record<number, Meaning>> = {
  400: 'invalid',
  401: 'account',
  402: 'account',
  403: 'account',
  404: 'failed',
  405: 'failed',
  408: 'transient',
  413: 'invalid',
  415: 'invalid',
  422: 'invalid',
  429: 'wait',
  504: 'timeout',
}

/** Where no rule speaks. */
export function meaningOfStatus(status: number): Meaning {
  return BY_STATUS[status] ?? (status >= 500 ? 'transient' : 'failed')
}

export type InputTest = (input: unknown, settings: Readonly<Record<string, string>>) => boolean

/** Whether an operation is the one that an input asks for. */
export function compileConditions(conditions: readonly Condition[] = []): InputTest {
  const tests = conditions.flatMap(compileCondition)
  return (input, settings) => tests.every((test) => test(input, settings))
}

function compileCondition({ present, absent, setting, path, is }: Condition): InputTest[] {
  const tests: InputTest[] = []
  if (present !== undefined) tests.push(hasValue(present))
  if (absent !== undefined) {
    const isThere = hasValue(absent)
    tests.push((input, settings) => !isThere(input, settings))
  }
  if (setting !== undefined) tests.push((_input, settings) => is?.includes(settings[setting] ?? '') ?? false)
  if (path !== undefined) {
    const where = readJsonPath(path)
    tests.push((input) => someValue(input, where, (value) => is?.includes(String(value)) ?? false))
  }
  return tests
}

function hasValue(path: string): InputTest {
  const where = readJsonPath(path)
  return (input) => someValue(input, where, (value) => !isEmpty(value))
}

/** null, '' and an empty list say that there is nothing. */
export function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}
