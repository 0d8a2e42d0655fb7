/** Every table of both databases: what the migrations make is compared with it, column by column. */
import * as accounts from './accounts.ts'
import * as assets from './assets.ts'
import * as builds from './builds.ts'
import * as bulkActions from './bulk-actions.ts'
import * as calls from './calls.ts'
import * as credits from './credits.ts'
import * as deployments from './deployments.ts'
import * as endpoints from './endpoints.ts'
import * as jobs from './job-tables.ts'
import * as nodes from './nodes.ts'
import * as schedules from './schedules.ts'
import * as service from './service.ts'
import type { Table } from './table.ts'
import * as webhooks from './webhooks.ts'

const exported: readonly unknown[] = [
  accounts,
  assets,
  builds,
  bulkActions,
  calls,
  credits,
  deployments,
  endpoints,
  jobs,
  nodes,
  schedules,
  service,
  webhooks,
].flatMap((each) => Object.values(each))

export const ALL_TABLES = exported.filter(isTable)

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && 'key' in value && 'fields' in value
}
