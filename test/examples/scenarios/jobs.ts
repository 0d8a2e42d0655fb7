/** The Jobs API on a service that accounts share: jobs, the queue, schedules, workflows, files, webhooks, budgets. */
import { waitUntil } from '../../support/wait-until.ts'
import { ask, type Scenario, type Step, type World } from '../scenario.ts'
import { pause, resume, startShared, untilEnded } from '../services.ts'

const CARD = {
  '1': { class_type: 'EmptyImage', inputs: { width: 128, height: 64, batch_size: 1, color: 2105376 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'card' } },
}
const SAVED = {
  nodes: [
    {
      id: 1,
      type: 'EmptyImage',
      inputs: [],
      outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [1] }],
      widgets_values: [128, 64, 1, 0],
    },
    {
      id: 2,
      type: 'SaveImage',
      inputs: [{ name: 'images', type: 'IMAGE', link: 1 }],
      outputs: [],
      widgets_values: ['card'],
    },
  ],
  links: [[1, 1, 0, 2, 0, 'IMAGE']],
}

const ended = (name: string) => (world: World) => untilEnded(world, world.values.get(name) ?? '')

const SUBMITS: readonly Step[] = [
  { operation: 'getHealth' },
  { operation: 'getOpenapi', isUntold: true },
  { operation: 'postJobs', body: { workflow: CARD, metadata: { project: 'cards' } }, keeps: { job: ['id'] } },
  { operation: 'getJobEvents', parameters: { id: '$job' } },
  { operation: 'getJob', parameters: { id: '$job' }, before: ended('job'), keeps: { output: ['outputs', 0, 'id'] } },
  { operation: 'listJobs', parameters: { status: 'succeeded', metadata: { project: 'cards' }, limit: 2 } },
  { operation: 'getJobWorkflow', parameters: { id: '$job' } },
  { operation: 'getJobLogs', parameters: { id: '$job' } },
  { operation: 'cancelJob', parameters: { id: '$job' } },
  { operation: 'validateJob', body: { workflow: CARD } },
  {
    operation: 'postBatch',
    body: { workflow: CARD, rows: [{ '1.width': 64 }, { '1.width': 256 }], metadata: { project: 'sizes' } },
    keeps: { batch: ['id'], member: ['items', 1, 'job_id'] },
    before: pause,
  },
  {
    operation: 'getBatch',
    parameters: { id: '$batch' },
    before: async (world) => {
      await resume(world)
      await ended('member')(world)
    },
  },
  { operation: 'cancelBatch', parameters: { id: '$batch' } },
  { operation: 'getBatchOutputs', parameters: { id: '$batch' } },
  {
    operation: 'createBulkAction',
    body: { action: 'download', job_ids: ['$job', '$member'] },
    keeps: { bulk: ['id'] },
  },
  {
    operation: 'getBulkAction',
    parameters: { id: '$bulk' },
    before: async (world) => {
      const path = `/api/v2/bulk-actions/${world.values.get('bulk')}`
      await waitUntil(async () => (await ask(world, 'GET', path)).json.ended_at !== null || null)
    },
  },
  { operation: 'listBulkActions' },
  { operation: 'listBulkActionJobs', parameters: { id: '$bulk', limit: 1 } },
  { operation: 'getBulkActionOutputs', parameters: { id: '$bulk' } },
  { operation: 'stopBulkAction', parameters: { id: '$bulk' } },
]

const QUEUE: readonly Step[] = [
  { operation: 'pauseQueue', body: { reason: 'maintenance' } },
  { operation: 'getQueue' },
  {
    operation: 'changeJob',
    parameters: { id: '$waiting' },
    body: { move: 'front' },
    before: async (world) => {
      for (let at = 0; at < 2; at++) {
        const { json } = await ask(world, 'POST', '/api/v2/jobs', { workflow: CARD })
        world.values.set('waiting', json.id)
      }
    },
  },
]

const SCHEDULES: readonly Step[] = [
  {
    operation: 'createSchedule',
    body: { name: 'nightly card', cron: '30 2 * * *', time_zone: 'Europe/Berlin', workflow: CARD },
    keeps: { schedule: ['id'] },
  },
  { operation: 'runSchedule', parameters: { id: '$schedule' } },
  { operation: 'listScheduleRuns', parameters: { id: '$schedule' } },
  { operation: 'updateSchedule', parameters: { id: '$schedule' }, body: { cron: '@weekly', overlap: 'skip' } },
  { operation: 'pauseSchedule', parameters: { id: '$schedule' }, body: { reason: 'holidays' } },
  { operation: 'getSchedule', parameters: { id: '$schedule' } },
  { operation: 'listSchedules' },
  { operation: 'resumeSchedule', parameters: { id: '$schedule' } },
  { operation: 'deleteSchedule', parameters: { id: '$schedule' } },
  { operation: 'resumeQueue' },
]

const FILES: readonly Step[] = [
  { operation: 'convertWorkflow', body: SAVED },
  {
    operation: 'postAssets',
    body: { content_type: 'text/plain', file_path: 'notes.txt', tags: ['draft'], file: 'what was said' },
    keeps: { asset: ['id'], hash: ['hash'] },
  },
  { operation: 'assetFromHash', body: { hash: '$hash', file_path: 'copy.txt' } },
  { operation: 'headAssetByHash', parameters: { hash: '$hash' } },
  { operation: 'getAsset', parameters: { id: '$asset' } },
  { operation: 'getAssetContent', parameters: { id: '$asset' } },
  { operation: 'deleteAsset', parameters: { id: '$asset' } },
  { operation: 'getUploadProtocol' },
  {
    operation: 'createUpload',
    parameters: { 'Tus-Resumable': '1.0.0', 'Upload-Length': 13, 'Upload-Metadata': 'filename bm90ZXMudHh0' },
  },
  {
    operation: 'appendUpload',
    parameters: { id: '$upload', 'Tus-Resumable': '1.0.0', 'Upload-Offset': 0 },
    body: 'what was',
    before: async (world) => {
      const made = await ask(world, 'POST', '/api/v2/uploads', undefined, {
        ...{ 'Tus-Resumable': '1.0.0', 'Upload-Length': '13', 'Upload-Metadata': 'filename bm90ZXMudHh0' },
      })
      world.values.set('upload', String(made.headers['location']).split('/').at(-1) ?? '')
    },
  },
  { operation: 'headUpload', parameters: { id: '$upload', 'Tus-Resumable': '1.0.0' } },
  { operation: 'getUpload', parameters: { id: '$upload' } },
  { operation: 'deleteUpload', parameters: { id: '$upload', 'Tus-Resumable': '1.0.0' } },
  { operation: 'listWeights', parameters: { folder: 'checkpoints' } },
]

const WEBHOOKS: readonly Step[] = [
  {
    operation: 'createWebhook',
    body: { url: 'http://127.0.0.1:9/hooks', events: ['job.succeeded', 'job.failed'] },
    keeps: { webhook: ['id'] },
  },
  { operation: 'listWebhooks' },
  { operation: 'getWebhook', parameters: { id: '$webhook' } },
  { operation: 'updateWebhook', parameters: { id: '$webhook' }, body: { events: ['job.failed'] } },
  { operation: 'rotateWebhookSecret', parameters: { id: '$webhook' }, body: { overlap_seconds: 3600 } },
  { operation: 'getWebhookSecret' },
  { operation: 'testWebhook', parameters: { id: '$webhook' }, keeps: { delivery: ['delivery_id'] } },
  {
    operation: 'listWebhookDeliveries',
    parameters: { webhook_id: '$webhook', limit: 1 },
    before: async (world) => {
      const path = `/api/v2/webhooks/deliveries/${world.values.get('delivery')}`
      await waitUntil(async () => (await ask(world, 'GET', path)).json.attempts === 1 || null)
    },
  },
  { operation: 'getWebhookDelivery', parameters: { id: '$delivery' } },
  { operation: 'replayWebhookDelivery', parameters: { id: '$delivery' } },
  {
    operation: 'replayWebhook',
    parameters: { id: '$webhook' },
    body: { from: '$yesterday', to: '$now', only_failed: true },
  },
  { operation: 'deleteWebhook', parameters: { id: '$webhook' } },
]

const MONEY: readonly Step[] = [
  {
    operation: 'createBudget',
    body: {
      ...{ name: 'blog', subject: 'tag', value: 'blog', limit_usd: '5.00', period: 'month' },
      ...{ time_zone: 'Europe/Berlin', alert_percent: [50, 80, 100] },
    },
    keeps: { budget: ['id'] },
  },
  { operation: 'listBudgets' },
  { operation: 'getBudget', parameters: { id: '$budget' } },
  { operation: 'updateBudget', parameters: { id: '$budget' }, body: { raise: { usd: '2.50', until: '$later' } } },
  { operation: 'deleteBudget', parameters: { id: '$budget' } },
  { operation: 'getStatement', parameters: { month: '$month' } },
  { operation: 'putProviderKey', parameters: { provider: 'openai' }, body: { key: 'sk-your-key-at-the-provider' } },
  { operation: 'listProviderKeys' },
  { operation: 'deleteProviderKey', parameters: { provider: 'openai' } },
]

export const JOBS: Scenario = {
  source: 'jobs-v2.openapi.json',
  name: 'jobs',
  start: startShared,
  steps: [...SUBMITS, ...QUEUE, ...SCHEDULES, ...FILES, ...WEBHOOKS, ...MONEY],
}
