/** A database server that crashes between the keeping of bytes and the record of them. Whoever keeps them outlives it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { settleBlob } from '../../../src/domain/assets/blob-store.ts'
import { isStoreAway } from '../../../src/domain/errors.ts'
import { inChunks, patterned, readAll } from '../../contracts/assets/blob-store.ts'
import { startPostgres } from '../../support/postgres/postgres-server.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn } from '../../support/s3/open-s3-blobs.ts'
import { waitUntil } from '../../support/wait-until.ts'

test('bytes that were kept are there, and announced, after the server has crashed', async () => {
  await using server = await startPostgres()
  await using store = await openPostgresStore({ url: server.url })
  await using fake = await startFakeS3()
  if (store.blobIndex === null) throw new Error('Postgres keeps an index')
  const place = { endpoint: fake.url, bucket: 'test-bytes', keys: fake.keys }
  await using s3 = await openBlobsOn(place, store.blobIndex)
  const bytes = patterned(1000)
  const walWriter = await findWalWriter(server.url)
  // Without it nothing reaches the log but what a commit waits for.
  process.kill(walWriter, 'SIGSTOP')
  const pending = await s3.blobs.receive(inChunks(bytes, 500), { maxBytes: 2000 })
  await settleBlob(pending, { assets: store.assets, clock: systemClock })
  // When one of its processes dies the server throws away its memory and recovers from the log.
  process.kill(walWriter, 'SIGKILL')
  await waitUntil(async () => (await findWalWriter(server.url).catch(() => walWriter)) !== walWriter)
  const isAnswered = () =>
    store.readMeta('colour').then(
      () => true,
      (error) => !isStoreAway(error),
    )
  await waitUntil(isAnswered)
  assert.deepEqual(await s3.blobs.stat(pending.hash), { sizeBytes: 1000 })
  assert.deepEqual(await store.assets.knownBlobs([pending.hash]), [pending.hash])
  assert.ok(bytes.equals(await readAll(await s3.blobs.open(pending.hash))))
})

async function findWalWriter(url: string): Promise<number> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    return rows[0]?.pid ?? 0
  } finally {
    await client.end()
  }
}
