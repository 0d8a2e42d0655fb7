/** The table of addresses. A pattern's parameters are given to the page by name. Pages but Home come when they are first opened. */
import type { ComponentType } from 'preact'
import { lazy } from '../lazy.tsx'
import { match } from '../routes.ts'
import { HomePage } from './home/home-page.tsx'
import { NotFoundPage } from './not-found/not-found-page.tsx'

type Parameters = Readonly<Record<string, string>>

const PAGES: readonly (readonly [pattern: string, title: string, page: ComponentType<Parameters>])[] = [
  ['/', 'Home', HomePage],
  ['/jobs', 'Jobs', lazy(() => import('./jobs/jobs-page.tsx').then(({ JobsPage }) => JobsPage))],
  [
    '/settings',
    'Settings',
    lazy(() => import('./settings/settings-page.tsx').then(({ SettingsPage }) => SettingsPage)),
  ],
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
