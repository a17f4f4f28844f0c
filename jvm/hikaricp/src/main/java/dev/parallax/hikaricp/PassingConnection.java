package dev.parallax.hikaricp;

import java.sql.Array;
import java.sql.Blob;
import java.sql.CallableStatement;
import java.sql.Clob;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.NClob;
import java.sql.PreparedStatement;
import java.sql.SQLClientInfoException;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.SQLXML;
import java.sql.Savepoint;
import java.sql.ShardingKey;
import java.sql.Statement;
import java.sql.Struct;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executor;

/** All of JDBC 4.3's connection, passed on. */
abstract class PassingConnection implements Connection {
    final Connection to;

    PassingConnection(Connection to) {
        this.to = to;
    }

    @Override
    public Statement createStatement() throws SQLException {
        return to.createStatement();
    }

    @Override
    public PreparedStatement prepareStatement(String a) throws SQLException {
        return to.prepareStatement(a);
    }

    @Override
    public CallableStatement prepareCall(String a) throws SQLException {
        return to.prepareCall(a);
    }

    @Override
    public String nativeSQL(String a) throws SQLException {
        return to.nativeSQL(a);
    }

    @Override
    public void setAutoCommit(boolean a) throws SQLException {
        to.setAutoCommit(a);
    }

    @Override
    public boolean getAutoCommit() throws SQLException {
        return to.getAutoCommit();
    }

    @Override
    public void commit() throws SQLException {
        to.commit();
    }

    @Override
    public void rollback() throws SQLException {
        to.rollback();
    }

    @Override
    public void close() throws SQLException {
        to.close();
    }

    @Override
    public boolean isClosed() throws SQLException {
        return to.isClosed();
    }

    @Override
    public DatabaseMetaData getMetaData() throws SQLException {
        return to.getMetaData();
    }

    @Override
    public void setReadOnly(boolean a) throws SQLException {
        to.setReadOnly(a);
    }

    @Override
    public boolean isReadOnly() throws SQLException {
        return to.isReadOnly();
    }

    @Override
    public void setCatalog(String a) throws SQLException {
        to.setCatalog(a);
    }

    @Override
    public String getCatalog() throws SQLException {
        return to.getCatalog();
    }

    @Override
    public void setTransactionIsolation(int a) throws SQLException {
        to.setTransactionIsolation(a);
    }

    @Override
    public int getTransactionIsolation() throws SQLException {
        return to.getTransactionIsolation();
    }

    @Override
    public SQLWarning getWarnings() throws SQLException {
        return to.getWarnings();
    }

    @Override
    public void clearWarnings() throws SQLException {
        to.clearWarnings();
    }

    @Override
    public Statement createStatement(int a, int b) throws SQLException {
        return to.createStatement(a, b);
    }

    @Override
    public PreparedStatement prepareStatement(String a, int b, int c) throws SQLException {
        return to.prepareStatement(a, b, c);
    }

    @Override
    public CallableStatement prepareCall(String a, int b, int c) throws SQLException {
        return to.prepareCall(a, b, c);
    }

    @Override
    public Map<String, Class<?>> getTypeMap() throws SQLException {
        return to.getTypeMap();
    }

    @Override
    public void setTypeMap(Map<String, Class<?>> a) throws SQLException {
        to.setTypeMap(a);
    }

    @Override
    public void setHoldability(int a) throws SQLException {
        to.setHoldability(a);
    }

    @Override
    public int getHoldability() throws SQLException {
        return to.getHoldability();
    }

    @Override
    public Savepoint setSavepoint() throws SQLException {
        return to.setSavepoint();
    }

    @Override
    public Savepoint setSavepoint(String a) throws SQLException {
        return to.setSavepoint(a);
    }

    @Override
    public void rollback(Savepoint a) throws SQLException {
        to.rollback(a);
    }

    @Override
    public void releaseSavepoint(Savepoint a) throws SQLException {
        to.releaseSavepoint(a);
    }

    @Override
    public Statement createStatement(int a, int b, int c) throws SQLException {
        return to.createStatement(a, b, c);
    }

    @Override
    public PreparedStatement prepareStatement(String a, int b, int c, int d) throws SQLException {
        return to.prepareStatement(a, b, c, d);
    }

    @Override
    public CallableStatement prepareCall(String a, int b, int c, int d) throws SQLException {
        return to.prepareCall(a, b, c, d);
    }

    @Override
    public PreparedStatement prepareStatement(String a, int b) throws SQLException {
        return to.prepareStatement(a, b);
    }

    @Override
    public PreparedStatement prepareStatement(String a, int[] b) throws SQLException {
        return to.prepareStatement(a, b);
    }

    @Override
    public PreparedStatement prepareStatement(String a, String[] b) throws SQLException {
        return to.prepareStatement(a, b);
    }

    @Override
    public Clob createClob() throws SQLException {
        return to.createClob();
    }

    @Override
    public Blob createBlob() throws SQLException {
        return to.createBlob();
    }

    @Override
    public NClob createNClob() throws SQLException {
        return to.createNClob();
    }

    @Override
    public SQLXML createSQLXML() throws SQLException {
        return to.createSQLXML();
    }

    @Override
    public boolean isValid(int a) throws SQLException {
        return to.isValid(a);
    }

    @Override
    public void setClientInfo(String a, String b) throws SQLClientInfoException {
        to.setClientInfo(a, b);
    }

    @Override
    public void setClientInfo(Properties a) throws SQLClientInfoException {
        to.setClientInfo(a);
    }

    @Override
    public String getClientInfo(String a) throws SQLException {
        return to.getClientInfo(a);
    }

    @Override
    public Properties getClientInfo() throws SQLException {
        return to.getClientInfo();
    }

    @Override
    public Array createArrayOf(String a, Object[] b) throws SQLException {
        return to.createArrayOf(a, b);
    }

    @Override
    public Struct createStruct(String a, Object[] b) throws SQLException {
        return to.createStruct(a, b);
    }

    @Override
    public void setSchema(String a) throws SQLException {
        to.setSchema(a);
    }

    @Override
    public String getSchema() throws SQLException {
        return to.getSchema();
    }

    @Override
    public void abort(Executor a) throws SQLException {
        to.abort(a);
    }

    @Override
    public void setNetworkTimeout(Executor a, int b) throws SQLException {
        to.setNetworkTimeout(a, b);
    }

    @Override
    public int getNetworkTimeout() throws SQLException {
        return to.getNetworkTimeout();
    }

    @Override
    public void beginRequest() throws SQLException {
        to.beginRequest();
    }

    @Override
    public void endRequest() throws SQLException {
        to.endRequest();
    }

    @Override
    public boolean setShardingKeyIfValid(ShardingKey a, ShardingKey b, int c) throws SQLException {
        return to.setShardingKeyIfValid(a, b, c);
    }

    @Override
    public boolean setShardingKeyIfValid(ShardingKey a, int b) throws SQLException {
        return to.setShardingKeyIfValid(a, b);
    }

    @Override
    public void setShardingKey(ShardingKey a, ShardingKey b) throws SQLException {
        to.setShardingKey(a, b);
    }

    @Override
    public void setShardingKey(ShardingKey a) throws SQLException {
        to.setShardingKey(a);
    }

    @Override
    public <T> T unwrap(Class<T> a) throws SQLException {
        return a.isInstance(this) ? a.cast(this) : a.isInstance(to) ? a.cast(to) : to.unwrap(a);
    }

    @Override
    public boolean isWrapperFor(Class<?> a) throws SQLException {
        return a.isInstance(this) || a.isInstance(to) || to.isWrapperFor(a);
    }

    /** Logs, and people who read them, know a connection by it. */
    @Override
    public String toString() {
        return to.toString();
    }
}
