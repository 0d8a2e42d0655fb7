/** The small values of a service. Whoever opens the same store must see the same ones, also when several make them at once. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MetaStore } from '../../src/domain/store.ts'

interface OpenedMeta {
  /** Two openers of one store: two connections, or the same one twice where a store serves one process. */
  readonly stores: readonly [MetaStore, MetaStore]
  close(): Promise<void>
}

export function testMetaStore(open: () => Promise<OpenedMeta>): void {
  async function withMeta(body: (one: MetaStore, other: MetaStore) => Promise<void>): Promise<void> {
    const { stores, close } = await open()
    try {
      await body(...stores)
    } finally {
      await close()
    }
  }

  describe('the values of a service', () => {
    test('are read as they were written last, and are null before', () =>
      withMeta(async (one, other) => {
        assert.equal(await one.readMeta('colour'), null)
        assert.equal(await one.changeMeta('colour', () => 'red'), 'red')
        assert.equal(await other.changeMeta('colour', () => 'blue'), 'blue')
        assert.equal(await one.readMeta('colour'), 'blue')
        assert.equal(await one.readMeta('shape'), null)
      }))

    test('are made once: of openers that race for a value, all get the same', () =>
      withMeta(async (one, other) => {
        const racers = Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? one : other).ensureMeta('service', () => `made by ${index}`),
        )
        const values = new Set(await Promise.all(racers))
        assert.equal(values.size, 1)
        assert.deepEqual([await one.readMeta('service')], [...values])
      }))

    test('that are there are not made again', () =>
      withMeta(async (one, other) => {
        await one.changeMeta('secret', () => 'old')
        const value = await other.ensureMeta('secret', () => assert.fail('nothing is to be made'))
        assert.equal(value, 'old')
      }))

    test('lose no change, however many are made at once', () =>
      withMeta(async (one, other) => {
        const numbers = Array.from({ length: 40 }, (_, index) => index)
        await Promise.all(
          numbers.map((number) =>
            (number % 2 === 0 ? one : other).changeMeta('seen', (seen) =>
              JSON.stringify([...(seen === null ? [] : JSON.parse(seen)), number]),
            ),
          ),
        )
        const seen: number[] = JSON.parse((await one.readMeta('seen')) ?? '[]')
        assert.deepEqual(
          seen.toSorted((a, b) => a - b),
          numbers,
        )
      }))

    test('are left alone by a change that fails', () =>
      withMeta(async (one, other) => {
        await one.changeMeta('kept', () => 'this')
        await assert.rejects(
          other.changeMeta('kept', () => assert.fail('no')),
          /no/,
        )
        assert.equal(await one.readMeta('kept'), 'this')
      }))

    test('keep any text that a key or a catalogue may have', () =>
      withMeta(async (one, other) => {
        const long = `{"name":"\\u0000","picture":"${'ü'.repeat(100_000)}"}`
        assert.equal(await one.ensureMeta('engine:gpu-1:8188', () => long), long)
        assert.equal(await other.readMeta('engine:gpu-1:8188'), long)
      }))
  })
}
