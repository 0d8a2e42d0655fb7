/** What `atelier doctor` learns of a database and of a bucket: whether everything that the service does with it works, by doing each of it once. */
import { randomUUID } from 'node:crypto'
import { silentLog } from '../../../lib/log.ts'
import { sendOnce } from '../../../lib/outbound/exchange.ts'
import { createSealer } from '../../../lib/sealer.ts'
import { toSendable } from '../../adapters/blobs/s3/parts.ts'
import { hasS3Code, toMistake } from '../../adapters/blobs/s3/s3-error.ts'
import type { DatabaseFacts as StoredFacts } from '../../adapters/store/postgres/database/inspect-database.ts'
import type { S3BlobsConfig } from '../../config/blocks/blobs-config.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { openBucket } from './open-bucket.ts'
import { toConnection } from './open-store.ts'

type BucketStep = 'put' | 'get' | 'range' | 'presigned' | 'list' | 'delete'

export interface BucketFacts {
  /** The steps that worked, in the order in which they are tried. */
  readonly worked: readonly BucketStep[]
  /** What the first step that did not work said; null: all did. */
  readonly failed: BucketFailure | null
  /** Which database its bytes belong to: none yet, the configured one, or another. */
  readonly belongs: 'nobody' | 'here' | 'elsewhere' | 'unknown'
}

interface BucketFailure {
  readonly step: BucketStep
  readonly reason: string
  /** What helps, where the answer shows it; null: that depends on the step. */
  readonly remedy: string | null
}

const TEXT = 'a bucket that is looked at by atelier doctor'
const LIMITS = { totalTimeMs: 10_000, maxBytes: 4096 }

export async function inspectBucket(
  config: S3BlobsConfig,
  { database, secrets }: InspectOptions,
): Promise<BucketFacts> {
  await using opened = openBucket(config, { secrets, log: silentLog })
  const { bucket, place } = opened
  const key = `${config.prefix}doctor/${randomUUID()}`
  const worked: BucketStep[] = []
  const steps: readonly (readonly [BucketStep, () => Promise<boolean>])[] = [
    ['put', () => bucket.put(key, toSendable(TEXT)).then(() => true)],
    ['get', async () => (await bucket.read(key))?.toString() === TEXT],
    ['range', async () => (await readPart(await bucket.get(key, 'bytes=2-7'))) === TEXT.slice(2, 8)],
    [
      'presigned',
      async () => {
        const url = await bucket.presign('GET', key, { query: {}, lifetimeSeconds: 60 })
        const answer = await sendOnce({ url, method: 'GET', headers: {}, wantsBody: true }, LIMITS)
        return answer.status === 200 && answer.body.toString() === TEXT
      },
    ],
    [
      'list',
      async () => {
        for await (const page of bucket.list(key)) if (page.some((object) => object.key === key)) return true
        return false
      },
    ],
    ['delete', () => bucket.remove(key).then(async () => (await bucket.read(key)) === null)],
  ]
  for (const [step, work] of steps) {
    const failed = await work().then(
      (isRight) => (isRight ? null : { step, reason: 'the answer was not what was stored', remedy: null }),
      (error: unknown) => toFailure(step, error),
    )
    if (failed !== null) {
      if (step !== 'put') await bucket.remove(key).catch(() => {})
      return { worked, failed, belongs: 'unknown' }
    }
    worked.push(step)
  }
  const [found, known] = [await place.readId(), await readBlobsId(database, secrets)]
  if (found === null) return { worked, failed: null, belongs: 'nobody' }
  return { worked, failed: null, belongs: found === known ? 'here' : 'elsewhere' }
}

/** Rights may be missing for a step alone; a start says whatever else is wrong in the same words. */
function toFailure(step: BucketStep, error: unknown): BucketFailure {
  const mistake = hasS3Code(error, 'AccessDenied') ? null : toMistake(error)
  if (mistake !== null) return { step, reason: mistake.fault, remedy: mistake.remedy }
  return { step, reason: error instanceof Error ? error.message : String(error), remedy: null }
}

interface InspectOptions {
  readonly database: PostgresConfig
  readonly secrets: Pick<Secrets, 'blobsKeys' | 'databasePassword'>
}

async function readPart({ body }: { readonly body: AsyncIterable<Buffer> }): Promise<string> {
  let text = ''
  for await (const chunk of body) text += chunk.toString()
  return text
}

/** null: the database has none yet, or cannot be asked, which is said elsewhere. */
async function readBlobsId(
  database: PostgresConfig,
  { databasePassword }: Pick<Secrets, 'databasePassword'>,
): Promise<string | null> {
  try {
    const { openPostgresStore } = await import('../../adapters/store/postgres/open-postgres-store.ts')
    await using store = await openPostgresStore({ ...toConnection(database, databasePassword), migrates: false })
    return await store.readMeta('blobs_id')
  } catch {
    return null
  }
}

/** What `atelier doctor` learns of a Postgres database. */
export interface DatabaseFacts extends Omit<StoredFacts, 'sealed'> {
  /** Whether the secret key opens what the service has sealed; null: nothing is sealed yet, or no key is set. */
  readonly secretKeyOpens: boolean | null
}

/** Throws StoreOpenError with a message for the operator. */
export async function inspectPostgres(
  config: PostgresConfig,
  secrets: Pick<Secrets, 'databasePassword' | 'secretKey' | 'formerSecretKeys'>,
): Promise<DatabaseFacts> {
  const { inspectDatabase } = await import('../../adapters/store/postgres/database/inspect-database.ts')
  const { sealed, ...facts } = await inspectDatabase(toConnection(config, secrets.databasePassword))
  return { ...facts, secretKeyOpens: opensAll(sealed, secrets) }
}

function opensAll(
  sealed: StoredFacts['sealed'],
  { secretKey, formerSecretKeys }: Pick<Secrets, 'secretKey' | 'formerSecretKeys'>,
): boolean | null {
  if (secretKey === null || sealed.length === 0) return null
  const sealer = createSealer(
    secretKey.reveal(),
    formerSecretKeys.map((key) => key.reveal()),
  )
  return sealed.every(({ context, bytes }) => sealer.open(bytes, context) !== null)
}
