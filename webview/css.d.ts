/** Style sheets are bundled into one file by the build; importing one has no value. */
declare module '*.css';
