/** Buckets for tests: each on a fake storage of its own, over one index that a file's tests share. */
import { after, before } from 'node:test'
import { type FakeS3, startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn, openTestIndex } from '../../support/s3/open-s3-blobs.ts'

type OpenOptions = NonNullable<Parameters<typeof openBlobsOn>[2]>

export const MIB = 1024 * 1024

export const toPlace = (fake: FakeS3) => ({ endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys })

export function useBuckets() {
  let shared: Awaited<ReturnType<typeof openTestIndex>>
  before(async () => {
    shared = await openTestIndex()
  })
  after(() => shared[Symbol.asyncDispose]())

  /** A bucket of its own; the index is emptied first. */
  async function open(options: OpenOptions = {}) {
    await using opening = new AsyncDisposableStack()
    for await (const hashes of shared.index.list())
      for (const hash of hashes) await shared.index.remove(hash, { isKnown: async () => false, now: new Date(0) })
    await shared.index.forgetGarbage(await shared.index.garbage(new Date(2 ** 42), 100_000))
    const fake = opening.use(await startFakeS3())
    const opened = opening.use(await openBlobsOn(toPlace(fake), shared.index, options))
    const all = opening.move()
    return { ...opened, fake, index: shared.index, [Symbol.asyncDispose]: () => all.disposeAsync() }
  }

  return { open, index: () => shared.index }
}
