/** The endpoints of the Jobs API: a workflow that is published, called, changed and shared. */
import type { Scenario, Step } from '../scenario.ts'
import { pause, resume, startShared } from '../services.ts'

const card = (more: object = {}) => ({
  '1': { class_type: 'EmptyImage', inputs: { width: 128, height: 64, batch_size: 1, color: 2105376 } },
  '2': {
    class_type: 'TextOverlay',
    _meta: { title: '$headline' },
    inputs: {
      ...{
        images: ['1', 0],
        text: 'Hello',
        font_size: 16,
        color: '#ffffff',
        position: 'top',
        align: 'center',
        outline: false,
      },
      ...more,
    },
  },
  '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'card' } },
})

const PUBLISH: readonly Step[] = [
  { operation: 'previewEndpoint', body: { file: card() } },
  { operation: 'publishEndpoint', body: { name: 'card', file: card(), title: 'A card' } },
  { operation: 'listEndpoints', parameters: { limit: 1 } },
  { operation: 'getEndpoint', parameters: { name: 'card' } },
  { operation: 'updateEndpoint', parameters: { name: 'card' }, body: { description: 'A card that says something.' } },
  {
    operation: 'publishEndpointVersion',
    parameters: { name: 'card' },
    body: { file: card({ outline: true }), note: 'outlined' },
  },
  { operation: 'listEndpointVersions', parameters: { name: 'card' } },
  { operation: 'getEndpointVersion', parameters: { name: 'card', version: 2 } },
  { operation: 'compareEndpointVersions', parameters: { name: 'card', from: '1', to: '2' } },
  { operation: 'putEndpointAlias', parameters: { name: 'card', alias: 'stable' }, body: { version: 1 } },
  { operation: 'getEndpointSchema', parameters: { name: 'card' } },
  { operation: 'describeEndpoint', parameters: { name: 'card' }, isUntold: true },
  { operation: 'describeEndpoints', isUntold: true },
  { operation: 'showEndpoint', parameters: { name: 'card' } },
  { operation: 'showEndpoints' },
  { operation: 'exportEndpoint', parameters: { name: 'card' } },
]

const CALLS: readonly Step[] = [
  { operation: 'validateEndpointRun', parameters: { name: 'card' }, body: { inputs: { headline: 'Good morning' } } },
  {
    operation: 'runEndpoint',
    parameters: { name: 'card', Prefer: 'wait=60' },
    body: { inputs: { headline: 'Good morning' } },
    keeps: { run: ['id'] },
  },
  { operation: 'getEndpointRun', parameters: { name: 'card', id: '$run' } },
  { operation: 'listEndpointRuns', parameters: { name: 'card', limit: 1 } },
  {
    operation: 'runEndpointBatch',
    parameters: { name: 'card' },
    body: { items: [{ headline: 'One' }, { headline: 'Two' }] },
    before: pause,
  },
  { operation: 'getEndpointUsage', parameters: { name: 'card' }, before: resume },
  {
    operation: 'createEndpointShare',
    parameters: { name: 'card' },
    body: { runs: 100, expires_at: '$later', note: 'for the fair' },
    keeps: { share: ['id'] },
  },
  { operation: 'listEndpointShares', parameters: { name: 'card' } },
  { operation: 'revokeEndpointShare', parameters: { name: 'card', id: '$share' } },
  { operation: 'deleteEndpointAlias', parameters: { name: 'card', alias: 'stable' } },
  { operation: 'deleteEndpoint', parameters: { name: 'card' } },
]

export const ENDPOINTS: Scenario = {
  source: 'jobs-v2.openapi.json',
  name: 'endpoints',
  start: startShared,
  steps: [...PUBLISH, ...CALLS],
}
