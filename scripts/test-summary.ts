/** A reporter for node:test that writes how many tests ran and how long each file took, as JSON. The runner reads it from a file. */
import type { TestEvent } from 'node:test/reporters'

export interface TestSummary {
  readonly count: number
  readonly files: readonly FileTime[]
}

export interface FileTime {
  readonly file: string
  readonly ms: number
}

export default async function* summarize(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let count = 0
  const files: FileTime[] = []
  for await (const event of source) {
    if (event.type !== 'test:summary') continue
    // One summary comes per file, and one without a file for the whole run.
    const { file, counts, duration_ms: ms } = event.data
    if (file === undefined) count = counts.tests
    else files.push({ file, ms })
  }
  const summary: TestSummary = { count, files }
  yield `${JSON.stringify(summary)}\n`
}
