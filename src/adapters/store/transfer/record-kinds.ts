/** What a move carries, from the descriptions of the tables: all of their columns but those with a reason to stay. */
import type { RecordKind } from '../../../domain/transfer/record-kinds.ts'
import * as accounts from '../tables/accounts.ts'
import { accountStorage, asset, assetImport, blobCandidate, output, resumableUpload } from '../tables/assets.ts'
import { build, buildArtifact, buildBlob, buildBlobUse, buildLog, buildRelease } from '../tables/builds.ts'
import { bulkAction, bulkItem } from '../tables/bulk-actions.ts'
import { providerKey, routerAccount, routerCall, routerInput, routerResult } from '../tables/calls.ts'
import { budget, creditAccount, ledgerEntry, ledgerHold } from '../tables/credits.ts'
import * as deployments from '../tables/deployments.ts'
import { endpoint, endpointCaller, endpointShare, endpointVersion } from '../tables/endpoints.ts'
import {
  gpuUse,
  job,
  jobBatch,
  jobInput,
  jobLabel,
  jobRecipe,
  jobResult,
  outputNumber,
  runScope,
  runTicket,
} from '../tables/job-tables.ts'
import { engine, engineCatalog } from '../tables/nodes.ts'
import { schedule, scheduleRun } from '../tables/schedules.ts'
import { meta, queuePause } from '../tables/service.ts'
import { type Columns, columnOf, type Table } from '../tables/table.ts'
import { webhookAttempt, webhookDelivery, webhookEndpoint } from '../tables/webhooks.ts'

/** A kind with the columns of a table, whose key may be another one than in the tables. */
function kindOf<const Name extends string>(name: Name, { fields, key }: Pick<Table, 'fields' | 'key'>) {
  const carried = (field: string) => fields[field].staysFor === undefined
  const rest = Object.keys(fields).filter((field) => !key.includes(field) && carried(field))
  return { name, keyLength: key.length, columns: [...key, ...rest].map((field) => columnOf(field, fields[field])) }
}

function tableKind<const Name extends string>(name: Name, table: Table) {
  if (table.name !== name) throw new Error(`${name} is not the table ${table.name}.`)
  return kindOf(name, table)
}

function without(fields: Columns, ...names: readonly string[]): Columns {
  return Object.fromEntries(Object.entries(fields).filter(([field]) => !names.includes(field)))
}

/** What a job has beside its row, under names of their own: the stores keep it in different tables. */
const JOB_PARTS = [
  ...[
    'workflow',
    'origin',
    'workflow_id',
    'submission',
    'run',
    'is_hidden',
    'log_text',
    'log_truncated',
    'log_captured_at',
  ],
  ...['log_complete', 'log_marks', 'sealed', 'notes'],
]
const jobKind = kindOf('job', { key: ['id'], fields: job.fields })

const KINDS = [
  tableKind('meta', meta),
  { name: 'account', keyLength: 1, columns: ['id', 'max_running', 'max_queued', 'served', 'share_percent'] },
  tableKind('account_profile', accounts.accountProfile),
  tableKind('api_key', accounts.apiKey),
  tableKind('deployment', accounts.deployment),
  tableKind('released_deployment', deployments.releasedDeployment),
  tableKind('deployment_revision', deployments.deploymentRevision),
  tableKind('deployment_event', deployments.deploymentEvent),
  tableKind('deployment_key', deployments.deploymentKey),
  tableKind('credit_account', creditAccount),
  tableKind('ledger_entry', ledgerEntry),
  tableKind('ledger_hold', ledgerHold),
  tableKind('budget', budget),
  tableKind('audit_log', accounts.auditLog),
  tableKind('rate_limit', accounts.rateLimit),
  tableKind('prompt_number', accounts.promptNumber),
  tableKind('queue_pause', queuePause),
  tableKind('output_number', outputNumber),
  tableKind('history_clear', accounts.historyClear),
  tableKind('user_file', accounts.userFile),
  tableKind('endpoint', endpoint),
  tableKind('endpoint_caller', endpointCaller),
  tableKind('endpoint_version', endpointVersion),
  tableKind('endpoint_share', endpointShare),
  tableKind('schedule', schedule),
  tableKind('schedule_run', scheduleRun),
  tableKind('bulk_action', bulkAction),
  tableKind('bulk_item', bulkItem),
  tableKind('build', build),
  tableKind('build_release', buildRelease),
  tableKind('build_artifact', buildArtifact),
  tableKind('build_log', buildLog),
  tableKind('build_blob', buildBlob),
  tableKind('build_blob_use', buildBlobUse),
  tableKind('idempotency_key', accounts.idempotencyKey),
  tableKind('job_batch', jobBatch),
  tableKind('job_result', jobResult),
  tableKind('job_recipe', jobRecipe),
  tableKind('run_scope', runScope),
  tableKind('run_ticket', runTicket),
  tableKind('gpu_use', gpuUse),
  tableKind('blob_candidate', blobCandidate),
  tableKind('engine_catalog', engineCatalog),
  tableKind('engine', engine),
  kindOf('asset', { key: ['id'], fields: without(asset.fields, 'jobId') }),
  { ...jobKind, columns: [...jobKind.columns, ...JOB_PARTS] },
  kindOf('job_input', { key: ['jobId', 'position'], fields: without(jobInput.fields, 'seq') }),
  tableKind('job_label', jobLabel),
  // The place in the job's list and what is told there are null for a file that is not listed.
  kindOf('output', { key: ['id'], fields: output.fields }),
  tableKind('router_call', routerCall),
  tableKind('router_input', routerInput),
  tableKind('router_result', routerResult),
  tableKind('router_account', routerAccount),
  tableKind('provider_key', providerKey),
  // Behind all that is told to them: a store that receives a job tells nobody of it, because nobody is there yet.
  tableKind('webhook_endpoint', webhookEndpoint),
  tableKind('webhook_delivery', webhookDelivery),
  tableKind('webhook_attempt', webhookAttempt),
  tableKind('resumable_upload', resumableUpload),
  tableKind('asset_import', assetImport),
  { ...tableKind('account_storage', accountStorage), isDerived: true },
]

export type RecordName = (typeof KINDS)[number]['name']

/** In the order in which they are written: whatever a row refers to comes before it. */
export const RECORD_KINDS: readonly RecordKind[] = KINDS
