import { PageTabs } from '../../components/tabs/page-tabs.tsx'

const PLACES = { models: ['/models', 'Models'], calls: ['/models/calls', 'Calls'] } as const

export function ModelTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return <PageTabs label="Models and calls" places={Object.values(PLACES)} here={PLACES[here][0]} />
}
