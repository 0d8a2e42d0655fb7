import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUuidV7, isUuid, newUuidV4, uuidFromText } from './ids.ts'

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

test('a time-ordered id is a UUIDv7 with its millisecond', () => {
  const newId = createUuidV7(() => Date.parse('2026-01-01T00:00:00.123Z'))
  const id = newId()
  assert.match(id, V7)
  assert.ok(isUuid(id))
  assert.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), Date.parse('2026-01-01T00:00:00.123Z'))
})

test('ids always rise: within a millisecond, when its numbers are used up, and when the clock is set back', () => {
  let nowMs = 1_800_000_000_000
  const newId = createUuidV7(() => nowMs)
  const ids: string[] = []
  for (let count = 0; count < 10_000; count++) {
    if (count === 6_000) nowMs += 50
    if (count === 8_000) nowMs -= 1_000
    ids.push(newId())
  }
  assert.deepEqual(ids.toSorted(), ids)
  assert.equal(new Set(ids).size, ids.length)
  assert.ok(ids.every((id) => V7.test(id)))
})

test('two generators do not make the same ids', () => {
  const makers = [createUuidV7(() => 5), createUuidV7(() => 5)]
  const ids = Array.from({ length: 2_000 }, (_, index) => makers[index % 2]())
  assert.equal(new Set(ids).size, ids.length)
})

test('only canonical lower-case UUIDs are ids', () => {
  assert.ok(isUuid(newUuidV4()))
  for (const text of [
    '',
    newUuidV4().toUpperCase(),
    `${newUuidV4()}0`,
    newUuidV4().replaceAll('-', ''),
    `{${newUuidV4()}}`,
  ])
    assert.equal(isUuid(text), false)
})

test('the id of a text is always the same and is a UUIDv8', () => {
  assert.equal(uuidFromText('acme/my job'), '12b6e5a2-d44a-88f7-928b-2c115969ae4c')
  assert.ok(isUuid(uuidFromText('')))
  assert.notEqual(uuidFromText('acme/my job'), uuidFromText('acme/my jobs'))
})
