/** Every scenario, and what has none. */
import type { Scenario } from '../scenario.ts'
import { ENDPOINTS } from './endpoints.ts'
import { JOBS } from './jobs.ts'

export const SCENARIOS: readonly Scenario[] = [JOBS, ENDPOINTS]

/** The modules of the clients, by their documents. */
export const DOORS: Readonly<Record<string, string>> = {
  'jobs-v2.openapi.json': 'atelier/client',
  'router.openapi.json': 'atelier/client/router',
  'admin.openapi.json': 'atelier/client/admin',
  'deploy-v1.openapi.json': 'atelier/client/deployments',
  'builder-v1.openapi.json': 'atelier/client/builds',
}
