/** Builds, releases, what those became on each platform, and uploaded files. */
import type { BlobKind } from '../../../domain/environments/blob.ts'
import type { Artifact, ArtifactStatus } from '../../../domain/environments/build.ts'
import type { BaseImage } from '../../../domain/environments/builder.ts'
import {
  type BuildDefinition,
  type BuildTarget,
  readTarget,
  targetText,
} from '../../../domain/environments/definition.ts'
import type { ReleaseLock } from '../../../domain/environments/lock.ts'
import { type Column, flag, integer, json, moment, nullable, omit, stays, table, text } from './table.ts'

function target(): Column<BuildTarget> {
  return { ...text(), decode: (stored) => readTarget(String(stored)), encode: targetText }
}

export const build = table('build', ['id'], {
  id: text(),
  accountId: text(),
  name: text(),
  description: nullable(text()),
  definition: json<BuildDefinition>(),
  createdBy: nullable(text()),
  createdAt: moment(),
  updatedAt: moment(),
  lastVersion: integer('integer'),
  modelCount: integer('integer'),
  packCount: integer('integer'),
})

export const buildRelease = table('build_release', ['id'], {
  id: text(),
  accountId: text(),
  buildId: text(),
  version: integer('integer'),
  contentHash: text(),
  definition: json<BuildDefinition>(),
  createdBy: nullable(text()),
  createdAt: moment(),
})

const HELD = 'whoever held it has stopped'

export const buildArtifact = table('build_artifact', ['id'], {
  id: text(),
  releaseId: text(),
  accountId: text(),
  position: integer('integer'),
  target: target(),
  status: text<ArtifactStatus>(),
  failureReason: nullable(text()),
  queuedAt: moment(),
  startedAt: nullable(moment()),
  finishedAt: nullable(moment()),
  attempts: integer('integer'),
  lock: nullable(json<ReleaseLock>()),
  archiveSha256: nullable(text()),
  sizeBytes: nullable(integer()),
  classes: nullable(json<NonNullable<Artifact['classes']>>()),
  logBytes: integer(),
  isLogTruncated: flag(),
  builder: nullable(text()),
  leaseId: stays(HELD, nullable(text())),
  leaseUntil: stays(HELD, nullable(moment())),
})

/** What a release tells of each. */
export const toldArtifact = omit(
  buildArtifact,
  ...(['position', 'logBytes', 'isLogTruncated', 'builder', 'leaseId', 'leaseUntil'] as const),
)

export const buildLog = table('build_log', ['artifactId', 'position'], {
  artifactId: text(),
  position: integer(),
  text: text(),
})

export const buildBlob = table('build_blob', ['id'], {
  id: text(),
  accountId: text(),
  kind: text<BlobKind>(),
  filename: text(),
  sha256: text(),
  sizeBytes: integer(),
  createdAt: moment(),
  uploadedAt: nullable(moment()),
  hash: nullable(text()),
  usedAt: moment(),
})

export const buildBlobUse = table('build_blob_use', ['blobId', 'holder'], { blobId: text(), holder: text() })

export const builder = table(
  'builder',
  ['id'],
  { id: text(), targets: json<readonly BuildTarget[]>(), baseImages: json<readonly BaseImage[]>(), until: moment() },
  { staysFor: 'who builds at the moment' },
)
