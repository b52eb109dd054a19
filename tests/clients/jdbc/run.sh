# PgJDBC: fetched once, compiled, run; an argument names a part.
if [ ! -d lib ]; then
    mvn -B -q dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime >mvn.log 2>&1 || {
        rm -rf lib
        echo "Maven cannot fetch PgJDBC"
        exit 77
    }
fi
javac -cp 'lib/*' Check.java
java -cp 'lib/*:.' Check "$@"
