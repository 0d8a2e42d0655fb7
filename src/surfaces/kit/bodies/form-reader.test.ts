import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FormError, FormReader } from './form-reader.ts'

const BOUNDARY = 'x-b'

function cut(body: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((share) => Math.floor(share * body.length)).toSorted((a, b) => a - b), body.length]
  return at.slice(1).map((end, index) => body.subarray(at[index], end))
}

async function* replay(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}

async function readAll(chunks: readonly Buffer[]): Promise<{ heads: string[]; bodies: Buffer[] }> {
  const reader = new FormReader(replay(chunks), BOUNDARY)
  const heads: string[] = []
  const bodies: Buffer[] = []
  await reader.skipPreamble(1000)
  for (let head = await reader.nextHead(1000); head !== null; head = await reader.nextHead(1000)) {
    heads.push(head)
    const parts: Buffer[] = []
    for await (const part of reader.streamBody()) parts.push(part)
    bodies.push(Buffer.concat(parts))
  }
  await reader.skipEpilogue(1000)
  return { heads, bodies }
}

// Bodies made of what delimiters are made of: the hard case for a search that sees the bytes in pieces.
const trickyBody = fc
  .array(fc.constantFrom('\r', '\n', '-', '--', 'x-b', '\r\n--x', '\r\n--x-', 'a', '\r\n'), { maxLength: 30 })
  .map((pieces) => pieces.join('').replaceAll(`\r\n--${BOUNDARY}`, ''))
  .filter((body) => !`\r\n${body}\r\n`.includes(`\r\n--${BOUNDARY}`))

test('a form reads the same wherever its bytes are cut', async () => {
  const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(fc.array(trickyBody, { maxLength: 4 }), cuts, async (bodies, where) => {
      const parts = bodies.map((body, index) => `--${BOUNDARY}\r\nn: ${index}\r\n\r\n${body}\r\n`)
      const form = Buffer.from(`before\r\n${parts.join('')}--${BOUNDARY}--\r\nafter`)
      const read = await readAll(cut(form, where))
      assert.deepEqual(
        read.bodies.map((body) => body.toString()),
        bodies,
      )
      assert.deepEqual(
        read.heads,
        bodies.map((_, index) => `n: ${index}`),
      )
    }),
    { numRuns: 500, seed: 20_261_115 },
  )
})

test('a form that is cut off anywhere is incomplete', async () => {
  const form = Buffer.from(`--${BOUNDARY}\r\na: b\r\n\r\nbody\r\n--${BOUNDARY}--`)
  for (let length = 0; length < form.length; length++) {
    await assert.rejects(
      readAll([form.subarray(0, length)]),
      (error) => error instanceof FormError && error.problem === 'incomplete',
      `cut after ${length} bytes`,
    )
  }
})

test('heads and text around the parts are bounded', async () => {
  const isTooLarge = (error: unknown) => error instanceof FormError && error.problem === 'too_large'
  const long = 'x'.repeat(2000)
  await assert.rejects(readAll([Buffer.from(`${long}\r\n--${BOUNDARY}--`)]), isTooLarge)
  await assert.rejects(readAll([Buffer.from(`--${BOUNDARY}\r\n${long}\r\n\r\nbody\r\n--${BOUNDARY}--`)]), isTooLarge)
  await assert.rejects(readAll([Buffer.from(`--${BOUNDARY}--`), Buffer.from(long)]), isTooLarge)
})

test('a part may come without any head', async () => {
  const read = await readAll([Buffer.from(`--${BOUNDARY}\r\n\r\nbody\r\n--${BOUNDARY}--`)])
  assert.deepEqual(read.heads, [''])
  assert.equal(read.bodies[0].toString(), 'body')
})
