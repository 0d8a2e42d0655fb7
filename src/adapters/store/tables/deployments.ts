/** Deployments on a release, and what is kept of each for those who ask later. */
import type {
  DeploymentRevision,
  DeploymentStatus,
  PendingUpdate,
  Progress,
  StopReason,
} from '../../../domain/deployments/released/released-deployment.ts'
import { integer, json, moment, named, nullable, table, text } from './table.ts'

export const releasedDeployment = table('released_deployment', ['id'], {
  id: text(),
  accountId: text(),
  buildId: text(),
  name: text(),
  gpuClass: text(),
  region: text(),
  min: named('min_workers', integer()),
  max: named('max_workers', integer()),
  status: text<DeploymentStatus>(),
  stopReason: nullable(text<StopReason>()),
  error: nullable(text()),
  revision: integer(),
  releaseId: text(),
  releaseVersion: integer(),
  pending: nullable(json<PendingUpdate>()),
  progress: nullable(json<Progress>()),
  createdBy: text(),
  createdAt: moment(),
  updatedAt: moment(),
  deletedAt: nullable(moment()),
  deletedBy: nullable(text()),
  version: integer(),
})

export const deploymentRevision = table('deployment_revision', ['deploymentId', 'revision'], {
  deploymentId: text(),
  revision: integer(),
  releaseId: text(),
  releaseVersion: integer(),
  kind: text<DeploymentRevision['kind']>(),
  fromRevision: nullable(integer()),
  createdBy: text(),
  createdAt: moment(),
})

export const deploymentEvent = table('deployment_event', ['deploymentId', 'n'], {
  deploymentId: text(),
  n: integer(),
  at: moment(),
  status: text<DeploymentStatus>(),
  message: nullable(text()),
  releaseId: nullable(text()),
})

export const deploymentKey = table('deployment_key', ['accountId', 'key'], {
  accountId: text(),
  key: text(),
  deploymentId: text(),
  createdAt: moment(),
})
