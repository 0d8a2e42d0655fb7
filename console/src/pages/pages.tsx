/** The table of addresses. A pattern's parameters are given to the page by name. */
import type { ComponentType } from 'preact'
import { match } from '../routes.ts'
import { HomePage } from './home/home-page.tsx'
import { NotFoundPage } from './not-found/not-found-page.tsx'
import { SettingsPage } from './settings/settings-page.tsx'

type Parameters = Readonly<Record<string, string>>

const PAGES: readonly (readonly [pattern: string, page: ComponentType<Parameters>])[] = [
  ['/', HomePage],
  ['/settings', SettingsPage],
]

export function findPage(path: string): { readonly Page: ComponentType<Parameters>; readonly parameters: Parameters } {
  for (const [pattern, Page] of PAGES) {
    const parameters = match(pattern, path)
    if (parameters !== null) return { Page, parameters }
  }
  return { Page: NotFoundPage, parameters: {} }
}
