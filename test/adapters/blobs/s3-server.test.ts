/** The blob store against real S3-compatible servers, where this machine has some: the contract, and what a server decides. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { toSendable } from '../../../src/adapters/blobs/s3/parts.ts'
import { hasS3Code, S3Error } from '../../../src/adapters/blobs/s3/s3-error.ts'
import { patterned, put, readAll, refusedWith, testBlobStore } from '../../contracts/assets/blob-store.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'
import { findRealS3, HOW_TO_GET_ONE, type RealS3 } from '../../support/s3/real-s3.ts'

const MIB = 1024 * 1024
const servers = findRealS3()

test('a real server is at hand', { skip: servers.length > 0 ? false : HOW_TO_GET_ONE }, () => {})

for (const { name, isStrict, start } of servers) {
  describe(`a real server: ${name}`, () => {
    let server: RealS3
    let shared: Awaited<ReturnType<typeof openTestIndex>>
    before(async () => {
      shared = await openTestIndex()
      server = await start()
    })
    after(async () => {
      await server?.[Symbol.asyncDispose]()
      await shared[Symbol.asyncDispose]()
    })

    async function open() {
      for await (const hashes of shared.index.list())
        for (const hash of hashes) await shared.index.remove(hash, { isKnown: async () => false, now: new Date(0) })
      return openBlobsOn({ ...server, prefix: 'some/prefix/' }, shared.index)
    }

    testBlobStore('real s3', open)

    test('takes parts of an upload of unknown length, and gives them back whole and in ranges', async () => {
      await using store = await open()
      for (const size of [8 * MIB, 8 * MIB + 1, 25 * MIB + 77]) {
        const bytes = patterned(size)
        const stored = await put(store.blobs, bytes)
        assert.ok(bytes.equals(await readAll(await store.blobs.open(stored))))
        const range = { start: 8 * MIB - 10, end: 8 * MIB - 1 }
        assert.ok(
          bytes.subarray(range.start, range.end + 1).equals(await readAll(await store.blobs.open(stored, range))),
        )
      }
    })

    test('writes a name once when asked to', async () => {
      await using store = await open()
      const key = `once-${Date.now()}`
      await store.bucket.put(key, toSendable('first'), { mustBeNew: true })
      await assert.rejects(store.bucket.put(key, toSendable('second'), { mustBeNew: true }), (error) =>
        hasS3Code(error, 'PreconditionFailed', 'ConditionalRequestConflict'),
      )
      assert.equal((await store.bucket.read(key))?.toString(), 'first')
      await store.bucket.remove(key)
      await store.bucket.remove(key)
      assert.equal(await store.bucket.read(key), null)
    })

    test('lists objects and unfinished uploads below a prefix', async () => {
      await using store = await open()
      const prefix = `listed-${Date.now()}/`
      for (const name of ['a', 'b', 'c']) await store.bucket.put(`${prefix}${name}`, toSendable(name))
      const listed: string[] = []
      for await (const page of store.bucket.list(prefix)) listed.push(...page.map(({ key }) => key))
      assert.deepEqual(
        listed.sort(),
        ['a', 'b', 'c'].map((name) => `${prefix}${name}`),
      )
      const uploadId = await store.bucket.beginUpload(`${prefix}half`)
      const uploads: string[] = []
      for await (const page of store.bucket.listUploads(prefix)) uploads.push(...page.map((each) => each.uploadId))
      assert.deepEqual(uploads, [uploadId])
      await store.bucket.abandonUpload(`${prefix}half`, uploadId)
      await store.bucket.abandonUpload(`${prefix}half`, uploadId)
    })
    if (!isStrict) return

    test('refuses bytes that were damaged on their way, and what is not signed by our keys', async () => {
      await using store = await open()
      const wrong = { ...toSendable('some bytes'), body: () => Buffer.from('same bytes') }
      await assert.rejects(store.bucket.put('damaged', wrong), (error) => {
        assert.ok(error instanceof S3Error && error.status === 400, String(error))
        return true
      })
      assert.equal(await store.bucket.sizeOf('damaged'), null)
      await using other = await openBlobsOn({ ...server, keys: 'AKIDEXAMPLE:another' }, shared.index)
      await assert.rejects(put(other.blobs, patterned(10)), refusedWith('store_unavailable'))
    })

    test('honours addresses that were given away, with type and disposition as signed', async () => {
      await using store = await open()
      const stored = await put(store.blobs, patterned(1000))
      const pinned = { contentType: 'image/png', disposition: 'inline; filename="a b+c (1).png"' }
      const address = (await store.blobs.signDirect?.(stored, { method: 'GET', ...pinned })) ?? assert.fail()
      const answer = await fetch(address)
      assert.equal(answer.status, 200, await answer.clone().text())
      assert.deepEqual(
        [answer.headers.get('content-type'), answer.headers.get('content-disposition')],
        [pinned.contentType, pinned.disposition],
      )
      assert.ok(patterned(1000).equals(Buffer.from(await answer.arrayBuffer())))
      assert.equal((await fetch(address, { headers: { range: 'bytes=0-9' } })).status, 206)
      const head = (await store.blobs.signDirect?.(stored, { method: 'HEAD', ...pinned })) ?? assert.fail()
      assert.equal((await fetch(head, { method: 'HEAD' })).headers.get('content-length'), '1000')
      assert.equal((await fetch(address.replace('image%2Fpng', 'text%2Fhtml'))).status, 403)
    })
  })
}
