/** The table of addresses. A pattern's parameters are given to the page by name. Pages but Home come when they are first opened. */
import type { ComponentType } from 'preact'
import { lazy } from '../lazy.tsx'
import { match } from '../routes.ts'
import { HomePage } from './home/home-page.tsx'
import { NotFoundPage } from './not-found/not-found-page.tsx'

type Parameters = Readonly<Record<string, string>>

type Row = readonly [pattern: string, title: string, page: ComponentType<Parameters>]

const JobsPage = lazy<Parameters>(() => import('./jobs/jobs-page.tsx').then((module) => module.JobsPage))
const JobPage = lazy<Parameters>(() => import('./job/job-page.tsx').then((module) => module.JobPage))
const DiffPage = lazy<Parameters>(() => import('./diff/diff-page.tsx').then((module) => module.DiffPage))
const RunPage = lazy<Parameters>(() => import('./run/run-page.tsx').then((module) => module.RunPage))
const GalleryPage = lazy<Parameters>(() => import('./gallery/gallery-page.tsx').then((module) => module.GalleryPage))
const AssetsPage = lazy<Parameters>(() => import('./assets/assets-page.tsx').then((module) => module.AssetsPage))
const SettingsPage = lazy<Parameters>(() =>
  import('./settings/settings-page.tsx').then((module) => module.SettingsPage),
)

const PAGES: readonly Row[] = [
  ['/', 'Home', HomePage],
  ['/jobs', 'Jobs', JobsPage],
  ['/jobs/:id', 'Job', JobPage],
  ['/jobs/:a/diff/:b', 'Two jobs', DiffPage],
  ['/run', 'Run', RunPage],
  ['/run/:saved', 'Run', RunPage],
  ['/gallery', 'Gallery', GalleryPage],
  ['/assets', 'Assets', AssetsPage],
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
