/** What a saved file carries about itself, in this order: keys and texts, such as the graph that made it. */
export type FileTags = readonly (readonly [key: string, value: string])[]
