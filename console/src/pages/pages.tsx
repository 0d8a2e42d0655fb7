/** The table of addresses. A pattern's parameters are given to the page by name. Pages but Home come when they are first opened. */
import type { ComponentType } from 'preact'
import { lazy } from '../lazy.tsx'
import { hrefOf, match } from '../routes.ts'
import { HomePage } from './home/home-page.tsx'

type Parameters = Readonly<Record<string, string>>

type Row = readonly [pattern: string, title: string, page: ComponentType<Parameters>]

const JobsPage = lazy<Parameters>(() => import('./jobs/jobs-page.tsx').then((module) => module.JobsPage))
const JobPage = lazy<Parameters>(() => import('./job/job-page.tsx').then((module) => module.JobPage))
const DiffPage = lazy<Parameters>(() => import('./diff/diff-page.tsx').then((module) => module.DiffPage))
const BatchPage = lazy<Parameters>(() => import('./batch/batch-page.tsx').then((module) => module.BatchPage))
const BulkListPage = lazy<Parameters>(() => import('./bulk/bulk-pages.tsx').then((module) => module.BulkListPage))
const BulkPage = lazy<Parameters>(() => import('./bulk/bulk-pages.tsx').then((module) => module.BulkPage))
const RunPage = lazy<Parameters>(() => import('./run/run-page.tsx').then((module) => module.RunPage))
const EndpointsPage = lazy<Parameters>(() =>
  import('./endpoints/endpoints-page.tsx').then((module) => module.EndpointsPage),
)
const EndpointPage = lazy<Parameters>(() =>
  import('./endpoints/endpoint-page.tsx').then((module) => module.EndpointPage),
)
const PublishPage = lazy<Parameters>(() =>
  import('./endpoints/publish/publish-page.tsx').then((module) => module.PublishPage),
)
const SchedulesPage = lazy<Parameters>(() =>
  import('./schedules/schedules-page.tsx').then((module) => module.SchedulesPage),
)
const EnvironmentsPage = lazy<Parameters>(() =>
  import('./environments/environments-page.tsx').then((module) => module.EnvironmentsPage),
)
const BuildPage = lazy<Parameters>(() => import('./environments/build-page.tsx').then((module) => module.BuildPage))
const DeploymentPage = lazy<Parameters>(() =>
  import('./environments/deployment-page.tsx').then((module) => module.DeploymentPage),
)
const GalleryPage = lazy<Parameters>(() => import('./gallery/gallery-page.tsx').then((module) => module.GalleryPage))
const AssetsPage = lazy<Parameters>(() => import('./assets/assets-page.tsx').then((module) => module.AssetsPage))
const ModelsPage = lazy<Parameters>(() => import('./models/models-page.tsx').then((module) => module.ModelsPage))
const ModelPage = lazy<Parameters>(() => import('./models/model-page.tsx').then((module) => module.ModelPage))
const CallsPage = lazy<Parameters>(() => import('./models/calls-page.tsx').then((module) => module.CallsPage))
const AccountPage = lazy<Parameters>(() => import('./account/account-page.tsx').then((module) => module.AccountPage))
const UsagePage = lazy<Parameters>(() => import('./account/usage-page.tsx').then((module) => module.UsagePage))
const KeysPage = lazy<Parameters>(() => import('./account/keys-page.tsx').then((module) => module.KeysPage))
const StatementPage = lazy<Parameters>(() =>
  import('./account/statement-page.tsx').then((module) => module.StatementPage),
)
const BudgetsPage = lazy<Parameters>(() => import('./account/budgets-page.tsx').then((module) => module.BudgetsPage))
const ProviderKeysPage = lazy<Parameters>(() =>
  import('./account/provider-keys-page.tsx').then((module) => module.ProviderKeysPage),
)
const WebhooksPage = lazy<Parameters>(() =>
  import('./webhooks/webhooks-page.tsx').then((module) => module.WebhooksPage),
)
const WebhookPage = lazy<Parameters>(() => import('./webhooks/webhook-page.tsx').then((module) => module.WebhookPage))
const OverviewPage = lazy<Parameters>(() =>
  import('./operator/overview-page.tsx').then((module) => module.OverviewPage),
)
const OperatorJobsPage = lazy<Parameters>(() =>
  import('./operator/jobs/all-jobs-page.tsx').then((module) => module.AllJobsPage),
)
const OperatorJobPage = lazy<Parameters>(() =>
  import('./operator/jobs/any-job-page.tsx').then((module) => module.AnyJobPage),
)
const AllBulkPage = lazy<Parameters>(() =>
  import('./operator/jobs/bulk-pages.tsx').then((module) => module.AllBulkPage),
)
const AnyBulkPage = lazy<Parameters>(() =>
  import('./operator/jobs/bulk-pages.tsx').then((module) => module.AnyBulkPage),
)
const EnginePage = lazy<Parameters>(() =>
  import('./operator/engines/engine-page.tsx').then((module) => module.EnginePage),
)
const EnginesPage = lazy<Parameters>(() =>
  import('./operator/engines/engines-page.tsx').then((module) => module.EnginesPage),
)
const AccountsPage = lazy<Parameters>(() =>
  import('./operator/accounts-page.tsx').then((module) => module.AccountsPage),
)
const OneAccountPage = lazy<Parameters>(() =>
  import('./operator/accounts-page.tsx').then((module) => module.OneAccountPage),
)
const OperatorUsagePage = lazy<Parameters>(() =>
  import('./operator/usage-page.tsx').then((module) => module.OperatorUsagePage),
)
const AccountStatementPage = lazy<Parameters>(() =>
  import('./operator/account-statement-page.tsx').then((module) => module.AccountStatementPage),
)
const DeploymentsPage = lazy<Parameters>(() =>
  import('./operator/deployments-page.tsx').then((module) => module.DeploymentsPage),
)
const AuditPage = lazy<Parameters>(() => import('./operator/audit-page.tsx').then((module) => module.AuditPage))
const SettingsPage = lazy<Parameters>(() =>
  import('./settings/settings-page.tsx').then((module) => module.SettingsPage),
)

const PAGES: readonly Row[] = [
  ['/', 'Home', HomePage],
  ['/jobs', 'Jobs', JobsPage],
  ['/jobs/:id', 'Job', JobPage],
  ['/jobs/:a/diff/:b', 'Two jobs', DiffPage],
  ['/batches/:id', 'Batch', BatchPage],
  ['/bulk', 'Many jobs', BulkListPage],
  ['/bulk/:id', 'Many jobs', BulkPage],
  ['/run', 'Run', RunPage],
  ['/run/:saved', 'Run', RunPage],
  ['/endpoints', 'Endpoints', EndpointsPage],
  ['/endpoints/:name', 'Endpoint', EndpointPage],
  // Beside the endpoints, not below them: an endpoint may have any name.
  ['/publish', 'Publish', PublishPage],
  ['/publish/:name', 'New version', PublishPage],
  ['/schedules', 'Schedules', SchedulesPage],
  ['/environments', 'Environments', EnvironmentsPage],
  ['/environments/builds/:id', 'Build', BuildPage],
  ['/environments/deployments/:id', 'Deployment', DeploymentPage],
  ['/gallery', 'Gallery', GalleryPage],
  ['/assets', 'Assets', AssetsPage],
  ['/models', 'Models', ModelsPage],
  ['/models/calls', 'Calls', CallsPage],
  ['/models/:provider/:model', 'Model', ModelPage],
  ['/account', 'Account', AccountPage],
  ['/account/usage', 'Usage', UsagePage],
  ['/account/statement', 'Statement', StatementPage],
  ['/account/budgets', 'Budgets', BudgetsPage],
  ['/account/keys', 'Keys', KeysPage],
  ['/account/provider-keys', 'Own provider keys', ProviderKeysPage],
  ['/webhooks', 'Webhooks', WebhooksPage],
  ['/webhooks/:id', 'Webhook', WebhookPage],
  ['/operator', 'Operator', OverviewPage],
  ['/operator/jobs', 'Jobs of all accounts', OperatorJobsPage],
  ['/operator/jobs/:id', 'Job', OperatorJobPage],
  ['/operator/bulk', 'Many jobs of all accounts', AllBulkPage],
  ['/operator/bulk/:id', 'Many jobs', AnyBulkPage],
  ['/operator/engines', 'Engines', EnginesPage],
  ['/operator/engines/:id', 'Engine', EnginePage],
  ['/operator/accounts', 'Accounts', AccountsPage],
  ['/operator/accounts/:id', 'Account', OneAccountPage],
  ['/operator/accounts/:id/statement', 'Statement', AccountStatementPage],
  ['/operator/usage', 'Usage of all accounts', OperatorUsagePage],
  ['/operator/deployments', 'Deployments', DeploymentsPage],
  ['/operator/audit', 'Audit', AuditPage],
  ['/settings', 'Settings', SettingsPage],
]

interface FoundPage {
  readonly Page: ComponentType<Parameters>
  readonly title: string
  readonly parameters: Parameters
}

export function findPage(path: string): FoundPage {
  for (const [pattern, title, Page] of PAGES) {
    const parameters = match(pattern, path)
    if (parameters !== null) return { Page, title, parameters }
  }
  return { Page: NotFoundPage, title: 'Nothing here', parameters: {} }
}

function NotFoundPage() {
  return (
    <section class="page">
      <h1>Nothing here</h1>
      <p>
        This address names no page of the console. <a href={hrefOf('/')}>Home</a>
      </p>
    </section>
  )
}
