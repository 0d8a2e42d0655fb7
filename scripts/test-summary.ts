/**
 * A reporter for node:test that writes how many tests ran, which were skipped and how long each file took, as JSON. The runner reads it
 * from a file. A file is a suite of its name (scripts/test.ts makes it so).
 * What made a test fail is printed at once, because a run that is stopped never reaches its end, and in short at the end, where a log
 * that was cut still has it.
 */

import path from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

export interface TestSummary {
  readonly count: number
  readonly files: readonly FileTime[]
  readonly skipped: readonly SkippedTest[]
  readonly failed: readonly FailedTest[]
}

export interface FileTime {
  readonly file: string
  readonly ms: number
}

/** A test, or a suite with all its tests, that did not run. */
export interface SkippedTest {
  readonly file: string
  readonly title: string
  readonly reason: string
}

export interface FailedTest {
  readonly file: string
  readonly title: string
  /** The first lines of it. */
  readonly why: string
}

const MAX_WRITTEN = 20_000
const MAX_WHY = 600
const IS_FILE = /\.test\.ts( |$)/
const showsEachTest = process.execArgv.includes('--test-reporter=spec')

export default async function* summarize(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let count = 0
  const files: FileTime[] = []
  const skipped: SkippedTest[] = []
  const failed: FailedTest[] = []
  /** What each process has written since its last file ended. */
  const written = new Map<string, string>()
  for await (const event of source) {
    if (event.type === 'test:stdout' || event.type === 'test:stderr') {
      const { file = '', message } = event.data
      written.set(file, ((written.get(file) ?? '') + message).slice(-MAX_WRITTEN))
    }
    if (event.type === 'test:fail') failed.push(...printFailure(event.data))
    if (event.type === 'test:pass') skipped.push(...skippedIn(event.data))
    if (event.type === 'test:pass' || event.type === 'test:fail') {
      const { name, nesting, details, file = '' } = event.data
      if (nesting > 0) continue
      if (event.type === 'test:fail' && !showsEachTest) process.stderr.write(written.get(file) ?? '')
      written.delete(file)
      if (details.type !== 'suite' || !IS_FILE.test(name)) continue
      files.push({ file: name, ms: details.duration_ms })
      if (!showsEachTest) printFile(name, details.duration_ms, event.type === 'test:pass')
    }
    if (event.type === 'test:coverage') printCoverage(event.data.summary)
    // One summary comes per process, and one without a file for the whole run.
    if (event.type === 'test:summary' && event.data.file === undefined) count = event.data.counts.tests
  }
  const summary: TestSummary = { count, files, skipped, failed }
  yield `${JSON.stringify(summary)}\n`
}

export function listOfSkipped(skipped: readonly SkippedTest[], project: string): string {
  const lines = skipped.map(({ file, title, reason }) => `${path.relative(project, file)}: ${title}: ${reason}`)
  return [`\n=== skipped for want of a tool: ${skipped.length} (a suite counts as one)`, ...lines].join('\n')
}

export function listOfFailed(failed: readonly FailedTest[], project: string): string {
  const lines = failed.map(({ file, title, why }) => `${path.relative(project, file)}: ${title}\n  ${why}`)
  return [`\n=== failed: ${failed.length}`, ...lines].join('\n')
}

function skippedIn({ name, file, skip }: Extract<TestEvent, { type: 'test:pass' }>['data']): SkippedTest[] {
  if (skip === undefined || skip === false) return []
  return [{ file: file ?? 'no file', title: name, reason: skip === true || skip === '' ? 'no reason given' : skip }]
}

function printFile(name: string, ms: number, ok: boolean): void {
  process.stdout.write(`${ok ? 'ok    ' : 'FAILED'} ${(ms / 1000).toFixed(1).padStart(6)} s  ${name}\n`)
}

function printCoverage({ totals, files }: Extract<TestEvent, { type: 'test:coverage' }>['data']['summary']): void {
  const parts = [
    `lines ${totals.coveredLinePercent.toFixed(2)} % of ${totals.totalLineCount}`,
    `branches ${totals.coveredBranchPercent.toFixed(2)} % of ${totals.totalBranchCount}`,
    `functions ${totals.coveredFunctionPercent.toFixed(2)} % of ${totals.totalFunctionCount}`,
  ]
  process.stdout.write(`\n=== covered in ${files.length} files: ${parts.join(', ')}\n`)
}

function printFailure({ name, file, details }: Extract<TestEvent, { type: 'test:fail' }>['data']): FailedTest[] {
  const { error } = details
  // A suite fails with its tests, and a file with all of them: they have nothing of their own to say.
  if ((error as { failureType?: string }).failureType === 'subtestsFailed') return []
  const cause = error.cause ?? error
  process.stderr.write(`=== failed: ${name} (${file ?? 'no file'})\n${inspect(cause)}\n`)
  const why = cause instanceof Error ? cause.message : String(cause)
  return [{ file: file ?? 'no file', title: name, why: why.slice(0, MAX_WHY).replaceAll('\n', '\n  ') }]
}
