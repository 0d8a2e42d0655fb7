/** Which of a model's operations an input asks for. Fields that are null count as left out. */
import { findLeaves, readJsonPath } from '../../../../domain/models/json-path.ts'
import type { Condition } from './rule-types.ts'

export type InputTest = (input: unknown, settings: Readonly<Record<string, string>>) => boolean

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
    tests.push((input) => findLeaves(input, where).some(({ value }) => is?.includes(String(value)) ?? false))
  }
  return tests
}

function hasValue(path: string): InputTest {
  const where = readJsonPath(path)
  return (input) => findLeaves(input, where).some(({ value }) => !isEmpty(value))
}

/** null, '' and an empty list say that there is nothing. */
export function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
}
