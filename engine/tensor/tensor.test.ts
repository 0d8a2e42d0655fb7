import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryLedger, sizeClass } from './tensor.ts'

const MIB = 1_048_576

function open(
  limitBytes: number,
  evict: () => boolean = () => false,
): { ledger: MemoryLedger; collections: () => number } {
  let collections = 0
  const collectGarbage = () => {
    collections += 1
  }
  return { ledger: new MemoryLedger({ limitBytes, evict, collectGarbage }), collections: () => collections }
}

test('memory counts until its last reader gives it back, and is then used again', () => {
  const { ledger } = open(8 * MIB)
  const first = ledger.allocate(MIB)
  ledger.retain(first)
  ledger.release(first)
  assert.equal(ledger.liveBytes(), first.byteLength)
  ledger.release(first)
  assert.equal(ledger.liveBytes(), 0)
  assert.equal(ledger.allocate(MIB), first)
})

test('beyond the limit the cache makes room first; then the request is refused and nothing is taken', () => {
  let evictable: SharedArrayBuffer[] = []
  const { ledger } = open(4 * MIB, () => {
    const buffer = evictable.pop()
    if (buffer === undefined) return false
    ledger.release(buffer)
    return true
  })
  evictable = [ledger.allocate(MIB), ledger.allocate(MIB)]
  ledger.allocate(3 * MIB)
  assert.equal(evictable.length, 0)
  const before = ledger.liveBytes()
  assert.throws(() => ledger.allocate(3 * MIB), /^NodeError: memory limit of 4 MiB reached/)
  assert.equal(ledger.liveBytes(), before)
})

test('what exceeds the limit by itself empties no cache', () => {
  let evictions = 0
  const { ledger } = open(4 * MIB, () => {
    evictions += 1
    return true
  })
  assert.throws(() => ledger.allocate(5 * MIB), /memory limit/)
  assert.equal(evictions, 0)
})

test('a buffer is known again behind another object; foreign and freed memory is not', () => {
  const { ledger } = open(8 * MIB)
  const buffer = ledger.allocate(100)
  assert.equal(ledger.recognise(structuredClone(buffer)), buffer)
  assert.throws(() => ledger.recognise(new SharedArrayBuffer(buffer.byteLength)), /did not get from `allocate`/)
  ledger.release(buffer)
  assert.throws(() => ledger.retain(buffer), /did not get from `allocate`/)
})

test('what falls out of the pool is collected once it is much', () => {
  const { ledger, collections } = open(1024 * MIB)
  // A quarter of the limit is pooled, so each of these pushes the one before out.
  const useOnce = (mebibytes: number) => ledger.release(ledger.allocate(mebibytes * MIB))
  useOnce(200)
  useOnce(240)
  assert.equal(collections(), 0)
  useOnce(220)
  assert.equal(collections(), 1)
})

test('sizes are rounded up by at most an eighth', () => {
  for (const bytes of [1, 4096, 4097, 50_331_664, 2 ** 31 + 1]) {
    const rounded = sizeClass(bytes)
    assert.ok(rounded >= bytes && rounded <= Math.max(4096, bytes * 1.125 + 1), `${bytes} became ${rounded}`)
  }
})

test('what decoders take counts too: one that does not fit beside others waits for them, one that never fits is refused', async () => {
  const { ledger } = open(8 * MIB)
  const first = await ledger.reserveOrWait(5 * MIB, { besideBytes: MIB })
  assert.throws(() => ledger.allocate(4 * MIB), /memory limit of 8 MiB reached/)
  await assert.rejects(ledger.reserveOrWait(9 * MIB), /memory limit of 8 MiB reached/)
  const order: string[] = []
  const second = ledger.reserveOrWait(4 * MIB).then((end) => {
    order.push('second')
    return end
  })
  order.push('first ends')
  first()
  first()
  ;(await second)()
  assert.deepEqual(order, ['first ends', 'second'])
  assert.equal(ledger.liveBytes(), 0)
})

test('a run has a share of its own, which counts until its memory is free again', () => {
  const ledger = new MemoryLedger({
    limitBytes: 8 * MIB,
    ownerLimitBytes: 4 * MIB,
    evict: () => false,
    collectGarbage() {},
  })
  const [one, other] = [{ liveBytes: 0 }, { liveBytes: 0 }]
  const buffer = ledger.allocate(3 * MIB, one)
  assert.throws(() => ledger.allocate(2 * MIB, one), /a job may use 4 MiB of memory/)
  ledger.allocate(3 * MIB, other)
  ledger.release(buffer)
  assert.equal(one.liveBytes, 0)
  ledger.allocate(3 * MIB, one)
})
