/** Assets, their bytes, and uploads that can be continued. */
import type { UploadFields } from '../../../domain/assets/create/upload-fields.ts'
import type { ImportError, ImportStatus } from '../../../domain/assets/library/import-store.ts'
import type { AssetNote } from '../../../domain/assets/library/library-store.ts'
import { bytes, integer, json, moment, nullable, only, stays, table, text, uuid } from './table.ts'

/** In SQLite outputs of jobs are here as well, and have a job; in Postgres they have a table of their own. */
export const asset = table('asset', ['seq'], {
  id: text(),
  seq: integer(),
  accountId: text(),
  hash: text(),
  sizeBytes: integer(),
  contentType: text(),
  filePath: nullable(text()),
  subfolder: nullable(text()),
  tags: json<readonly string[]>(),
  createdAt: moment(),
  expiresAt: nullable(moment()),
  jobId: only('sqlite', nullable(text())),
  note: nullable(json<AssetNote>()),
})

export const output = table(
  'output',
  ['id', 'expiresAt'],
  {
    id: text(),
    seq: integer(),
    accountId: text(),
    jobId: uuid(),
    position: nullable(integer('integer')),
    nodeId: text(),
    name: text(),
    type: text(),
    contentType: text(),
    sizeBytes: integer(),
    hash: text(),
    filePath: text(),
    subfolder: nullable(text()),
    createdAt: moment(),
    expiresAt: moment(),
    note: nullable(json<AssetNote>()),
  },
  { only: 'postgres' },
)

export const assetImport = table('asset_import', ['id'], {
  id: text(),
  accountId: text(),
  url: text(),
  name: text(),
  status: text<ImportStatus>(),
  bytesTotal: nullable(integer()),
  bytesDone: integer(),
  assetId: nullable(text()),
  error: nullable(json<ImportError>()),
  createdAt: moment(),
  changedAt: moment(),
  expiresAt: moment(),
})

export const accountStorage = table('account_storage', ['accountId'], { accountId: text(), bytes: integer() })

export const accountBlob = table(
  'account_blob',
  ['accountId', 'hash'],
  { accountId: text(), hash: text(), records: integer(), sizeBytes: integer() },
  { only: 'postgres', staysFor: 'made anew from assets and outputs' },
)

/** Bytes that nothing may refer to, since when. */
export const blobCandidate = table('blob_candidate', ['hash'], { hash: text(), sizeBytes: integer(), since: moment() })

export const blob = table(
  'blob',
  ['hash'],
  { hash: text(), objectKey: text(), sizeBytes: integer(), since: moment() },
  { only: 'postgres', staysFor: 'which object of a bucket holds which bytes: made where the bytes are put' },
)

export const blobGarbage = table(
  'blob_garbage',
  ['objectKey'],
  { objectKey: text(), since: moment() },
  { only: 'postgres', staysFor: 'objects of a bucket that are still to be removed from it' },
)

export const smallBytes = table(
  'small_bytes',
  ['hash'],
  { hash: text(), bytes: bytes() },
  { only: 'sqlite', staysFor: 'bytes of outputs, which are moved with those in files' },
)

const HELD = 'whoever held it has stopped'

export const resumableUpload = table('resumable_upload', ['id'], {
  id: text(),
  accountId: text(),
  lengthBytes: integer(),
  fields: json<UploadFields>(),
  metadata: text(),
  place: nullable(text()),
  hash: nullable(text()),
  assetId: nullable(text()),
  createdAt: moment(),
  expiresAt: moment(),
  leaseId: stays(HELD, nullable(text())),
  leaseUntil: stays(HELD, nullable(moment())),
})
