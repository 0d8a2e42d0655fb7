/** A reporter for node:test that writes how many tests ran, as one number. The runner reads it from a file. */
import type { TestEvent } from 'node:test/reporters'

export default async function* countTests(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let count = 0
  for await (const event of source) {
    // One summary comes per file, and one without a file for the whole run.
    if (event.type === 'test:summary' && event.data.file === undefined) count = event.data.counts.tests
  }
  yield `${count}\n`
}
