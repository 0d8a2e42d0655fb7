/** How every store of endpoints behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { EndpointInput, EndpointVersion } from '../../../src/domain/endpoints/endpoint.ts'
import type { EndpointKey, Publish, Published } from '../../../src/domain/endpoints/endpoint-store.ts'
import { NO_LIMITS } from '../../../src/domain/jobs/limits/run-limits.ts'
import { at, START, type StoreOpener, shareStore, type WholeStoreUnderTest } from '../store-under-test.ts'

const seed: EndpointInput = {
  ...{ type: 'seed', name: 'seed', title: 'Seed', description: '', isRequired: false },
  places: [{ nodeId: '3', input: 'seed' }],
  ...{ example: 18446744073709551615n, minimum: 0, maximum: 18446744073709551615n },
}

function newVersion(hash: string, fields: Partial<EndpointVersion> = {}): Omit<EndpointVersion, 'number'> {
  return {
    ...{ hash, note: `note of ${hash}`, createdAt: START, createdBy: null, graph: `{"of":"${hash}"}`, inputs: [seed] },
    outputs: [{ name: 'image', title: 'Image', nodeId: '9', kind: 'image' }],
    required: { classes: ['SaveImage'], weights: [{ folder: 'checkpoints', name: 'a.safetensors' }] },
    ...fields,
  }
}

const SETTINGS = {
  deployment: null,
  isTool: true,
  models: ['gpt-image-1'],
  callers: [],
  limits: NO_LIMITS,
  price: null,
}

function mustBePublished(result: Published) {
  assert.equal(result.outcome, 'published')
  return result
}

export function testEndpointStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('endpoints', () => {
    const store = shareStore(opener)
    const endpoints = () => store().endpoints

    async function newTenant() {
      const accountId = randomUUID()
      const revisionOf = async (name: string) => (await endpoints().find({ accountId, name }))?.revision ?? null
      const publish = async (name: string, hash: string, fields: Partial<Publish> = {}) =>
        endpoints().publish({
          ...{ accountId, name, version: newVersion(hash), revision: await revisionOf(name), limit: 10 },
          texts: { settings: SETTINGS },
          ...fields,
        })
      return { accountId, publish, keyOf: (name: string) => ({ accountId, name }) }
    }

    test('a publish makes version 1 of a new endpoint, the next one version 2; each is read back as it was, digits included', async () => {
      const { publish, keyOf } = await newTenant()
      const first = mustBePublished(await publish('poster', 'a', { texts: { title: 'Poster', settings: SETTINGS } }))
      assert.deepEqual([first.isNew, first.version.number, first.endpoint.currentVersion], [true, 1, 1])
      assert.deepEqual(await endpoints().find(keyOf('poster')), first.endpoint)
      assert.deepEqual(first.endpoint, {
        ...{ ...keyOf('poster'), title: 'Poster', description: '', state: 'ready', currentVersion: 1, lastVersion: 1 },
        ...{ aliases: {}, settings: SETTINGS, createdAt: START, updatedAt: START, revision: 1 },
      })
      const second = mustBePublished(await publish('poster', 'b'))
      assert.deepEqual([second.version.number, second.endpoint.title, second.endpoint.lastVersion], [2, 'Poster', 2])
      assert.deepEqual(await endpoints().findVersion(keyOf('poster'), 1), { ...newVersion('a'), number: 1 })
      assert.equal(await endpoints().findVersion(keyOf('poster'), 3), null)
    })

    test('the same content again makes no version: the one that has it is current again', async () => {
      const { publish } = await newTenant()
      await publish('poster', 'a')
      await publish('poster', 'b')
      const again = mustBePublished(await publish('poster', 'a'))
      assert.deepEqual([again.isNew, again.version.number], [false, 1])
      assert.deepEqual([again.endpoint.currentVersion, again.endpoint.lastVersion], [1, 2])
    })

    test('of publishes that were judged by the same state one is made, and the others are told that it has changed', async () => {
      const { publish, keyOf } = await newTenant()
      await publish('poster', 'a')
      const judged = ['b', 'c', 'd', 'e'].map((hash) => publish('poster', hash, { revision: 1 }))
      const outcomes = (await Promise.all(judged)).map(({ outcome }) => outcome).sort()
      assert.deepEqual(outcomes, ['changed', 'changed', 'changed', 'published'])
      assert.equal((await endpoints().find(keyOf('poster')))?.lastVersion, 2)
      const fresh = ['f', 'g'].map((hash) => publish('new', hash, { revision: null }))
      assert.deepEqual((await Promise.all(fresh)).map(({ outcome }) => outcome).sort(), ['changed', 'published'])
    })

    test('a change needs the revision that it was decided by', async () => {
      const { publish, keyOf } = await newTenant()
      await publish('poster', 'a')
      const change = { state: 'stopped', aliases: { stable: 1 }, currentVersion: 1 } as const
      const changed = await endpoints().change(keyOf('poster'), 1, change, at(5))
      assert.deepEqual([changed?.state, changed?.aliases, changed?.revision], ['stopped', { stable: 1 }, 2])
      assert.deepEqual(changed?.updatedAt, at(5))
      assert.equal(await endpoints().change(keyOf('poster'), 1, change, at(6)), null)
      assert.equal(await endpoints().change(keyOf('none'), 1, change, at(6)), null)
    })

    test('one that was removed is gone with its versions; published again, its numbers count on', async () => {
      const { publish, keyOf, accountId } = await newTenant()
      await publish('poster', 'a')
      await publish('poster', 'b')
      assert.equal(await endpoints().remove(keyOf('poster'), at(5)), true)
      assert.equal(await endpoints().remove(keyOf('poster'), at(5)), false)
      assert.equal(await endpoints().find(keyOf('poster')), null)
      assert.equal(await endpoints().findVersion(keyOf('poster'), 1), null)
      assert.deepEqual(await endpoints().list(accountId, { after: null, limit: 10 }), [])
      const { version, endpoint } = mustBePublished(await publish('poster', 'a', { revision: null }))
      assert.deepEqual([version.number, endpoint.currentVersion, endpoint.title], [3, 3, 'poster'])
    })

    test('lists are by name and page by page, versions the newest first; nothing is told to another account', async () => {
      const { publish, keyOf, accountId } = await newTenant()
      for (const name of ['b', 'c', 'a']) await publish(name, 'x')
      const namesOf = async (after: string | null, limit: number) =>
        (await endpoints().list(accountId, { after, limit })).map(({ name }) => name)
      assert.deepEqual(await namesOf(null, 2), ['a', 'b'])
      assert.deepEqual(await namesOf('b', 2), ['c'])
      for (const hash of ['y', 'z']) await publish('a', hash)
      const numbersOf = async (before: number | null) =>
        (await endpoints().listVersions(keyOf('a'), { before, limit: 2 })).map(({ number }) => number)
      assert.deepEqual([await numbersOf(null), await numbersOf(2)], [[3, 2], [1]])
      const stranger = { accountId: randomUUID(), name: 'a' }
      assert.equal(await endpoints().find(stranger), null)
      assert.equal(await endpoints().findVersion(stranger, 1), null)
      assert.equal(await endpoints().remove(stranger, at(1)), false)
    })

    test('what others share with an account, or with every one, is listed to it by owner and name, page by page', async () => {
      const [one, other] = (await Promise.all([newTenant(), newTenant()])).toSorted((a, b) =>
        a.accountId < b.accountId ? -1 : 1,
      )
      const caller = randomUUID()
      const sharedWith = (callers: readonly string[]) => ({ texts: { settings: { ...SETTINGS, callers } } })
      await one.publish('b', 'x', sharedWith([caller, one.accountId]))
      await one.publish('a', 'x', sharedWith([caller, '*']))
      await one.publish('c', 'x', sharedWith([other.accountId]))
      await other.publish('a', 'x', sharedWith(['*']))
      await other.publish('b', 'x', sharedWith([]))
      const owners = new Map<string, string>(
        [one, other].map(({ accountId }, index) => [accountId, ['one', 'other'][index]] as const),
      )
      const listed = async (accountId: string, after: EndpointKey | null = null, limit = 1000) =>
        (await endpoints().listShared(accountId, { after, limit }))
          .filter((each) => owners.has(each.accountId))
          .map((each) => `${owners.get(each.accountId)}/${each.name}`)
      assert.deepEqual(await listed(caller), ['one/a', 'one/b', 'other/a'])
      assert.deepEqual(await listed(caller, one.keyOf('a')), ['one/b', 'other/a'])
      assert.deepEqual(await listed(caller, one.keyOf('a'), 1), ['one/b'])
      assert.deepEqual(await listed(other.accountId), ['one/a', 'one/c'])
      assert.deepEqual(await listed(one.accountId), ['other/a'])
      await endpoints().change(one.keyOf('b'), 1, sharedWith(['someone']).texts, at(5))
      await endpoints().remove(one.keyOf('a'), at(5))
      assert.deepEqual(await listed(caller), ['other/a'])
      await one.publish('a', 'x', { revision: null, ...sharedWith([caller]) })
      await other.publish('a', 'y', sharedWith([]))
      assert.deepEqual(await listed(caller), ['one/a'])
    })

    test('a version keeps the release that it was published on, and a list of versions tells it', async () => {
      const { publish, keyOf } = await newTenant()
      const release = { deployment: 'dep-000000000001', version: 3, isPinned: true }
      const required = { classes: ['SaveImage'], weights: [], release }
      await publish('a', 'x', { version: newVersion('x', { required }) })
      await publish('a', 'y')
      assert.deepEqual((await endpoints().findVersion(keyOf('a'), 1))?.required, required)
      const listed = await endpoints().listVersions(keyOf('a'), { before: null, limit: 2 })
      assert.deepEqual(
        listed.map((version) => version.required.release),
        [undefined, release],
      )
    })

    test('one is found by a further name of it and by the content of a version, the first by name', async () => {
      const { publish, keyOf, accountId } = await newTenant()
      await publish('b', 'x')
      await publish('a', 'x')
      await publish('a', 'y')
      const withModels = (models: readonly string[], deployment: string | null = null) => ({
        settings: { ...SETTINGS, deployment, models },
      })
      const nameOf = async (model: string) => (await endpoints().findByModel(accountId, model))?.name ?? null
      assert.equal(await nameOf('gpt-image-1'), 'a')
      await endpoints().change(keyOf('a'), 2, withModels(['50%_"off"'], 'gpt-image-1'), at(5))
      assert.deepEqual([await nameOf('gpt-image-1'), await nameOf('50%_"off"')], ['b', 'a'])
      assert.deepEqual([await nameOf('gpt-image'), await nameOf('GPT-IMAGE-1')], [null, null])
      assert.deepEqual(await endpoints().findByHash(accountId, 'x'), [
        { name: 'a', number: 1 },
        { name: 'b', number: 1 },
      ])
      assert.deepEqual(await endpoints().findByHash(accountId, 'y'), [{ name: 'a', number: 2 }])
      await endpoints().remove(keyOf('a'), at(6))
      assert.deepEqual(await endpoints().findByHash(accountId, 'x'), [{ name: 'b', number: 1 }])
      assert.deepEqual([await nameOf('50%_"off"'), await endpoints().findByHash(accountId, 'y')], [null, []])
      const stranger = randomUUID()
      assert.equal(await endpoints().findByModel(stranger, 'gpt-image-1'), null)
      assert.deepEqual(await endpoints().findByHash(stranger, 'x'), [])
    })

    test('an account has no more endpoints than it may', async () => {
      const { publish } = await newTenant()
      await publish('a', 'x', { limit: 2 })
      const both = await Promise.all(['b', 'c'].map((name) => publish(name, 'x', { limit: 2 })))
      assert.deepEqual(both.map(({ outcome }) => outcome).sort(), ['published', 'too_many'])
      assert.equal((await publish('a', 'y', { limit: 2 })).outcome, 'published')
    })

    test('one that is removed makes room for another; its name and number are kept, of ten times as many', async () => {
      const { publish, keyOf } = await newTenant()
      const names = Array.from({ length: 10 }, (_, index) => `e${index}`)
      for (const name of names) {
        mustBePublished(await publish(name, 'x', { limit: 1 }))
        await endpoints().remove(keyOf(name), at(1))
      }
      assert.equal((await publish('another', 'x', { limit: 1 })).outcome, 'too_many')
      assert.equal(mustBePublished(await publish('e3', 'x', { limit: 1 })).version.number, 2)
      // It counts as a new one, though its name is known.
      assert.equal((await publish('e4', 'x', { limit: 1 })).outcome, 'too_many')
    })
  })
}
