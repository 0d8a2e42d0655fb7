/** How messages reach webhooks. */
import type { SettingName } from '../env.ts'
import { readSwitch } from '../readers/read-choice.ts'
import { readCount, readDurationMs, SECOND } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const WEBHOOK_SETTINGS = {
  webhookPrivateNetwork: {
    group: 'Webhooks',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Lets accounts name addresses of private networks, and plain http. Whoever may add a webhook can then make the service call machines that only it can reach.',
  },
  webhookTimeout: {
    group: 'Webhooks',
    argument: '<duration>',
    fallback: '10s',
    read: readDurationMs({ min: 100, max: 30 * SECOND }),
    help: 'How long one attempt may take, from the connection to the end of the answer.',
  },
  webhookFirstRetry: {
    group: 'Webhooks',
    argument: '<duration>',
    fallback: '5s',
    read: readDurationMs({ min: 10, max: 600 * SECOND }),
    help: 'The pause before the second attempt. Later pauses are multiples of it (6, 24, 120, 360, 720, 1440, 2880, 5760, 8640), each a fifth more or less, until three days have passed.',
  },
  webhookConcurrency: {
    group: 'Webhooks',
    argument: '<count>',
    fallback: '4',
    read: readCount({ min: 1, max: 64, example: 4 }),
    help: 'Messages that are sent to one webhook at a time; only one while the webhook fails.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
